// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// fillTags are [Tags] without "notest", which takes away the methods with which
// API types fill themselves at random: round-trip tests fail without them.
const fillTags = "selinux,grpcnotrace"

// fillImports are what a test imports that fills API types at random.
var fillImports = regexp.MustCompile(`\b(sigs\.k8s\.io/randfill|k8s\.io/apimachinery/pkg/api/apitesting/\w+)\b`)

// Kind is which packages [UnitTest] tests, by what has to be compiled for them.
type Kind struct{ plain, filling bool }

// Those that fill API types at random are compiled in a way of their own, and so is all that they import. The others
// are compiled as the components are.
var (
	Plain   = Kind{plain: true}
	Filling = Kind{filling: true}
	Both    = Kind{plain: true, filling: true}
)

// UnitTest is [Test] for the packages of a kind that match patterns, with all that go vet checks, so
// that what it has found out about their imports serves here. It returns those of another kind.
func UnitTest(ctx context.Context, dir string, kind Kind, log, out io.Writer, args []string, patterns ...string) (left []string, err error) {
	plain, filling, err := listFilling(ctx, dir, log, patterns)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, group := range []struct {
		is   bool
		tags string
		pkgs []string
	}{{kind.plain, Tags, plain}, {kind.filling, fillTags, filling}} {
		switch {
		case !group.is:
			left = append(left, group.pkgs...)
		case len(group.pkgs) > 0:
			errs = append(errs, goTest(ctx, dir, nil, log, out, group.tags, slices.Concat([]string{"-vet=all"}, args, group.pkgs)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return left, err
	}
	if len(plain)+len(filling) == 0 {
		return nil, fmt.Errorf("no package matches %s", strings.Join(patterns, " "))
	}
	return left, nil
}

// UnitTestOne is [TestOne] for a package that is compiled as [UnitTest] does.
func UnitTestOne(ctx context.Context, dir string, log io.Writer, pkg string, args ...string) (TestResult, error) {
	_, filling, err := listFilling(ctx, dir, log, []string{pkg})
	if err != nil {
		return TestResult{}, err
	}
	tags := Tags
	if len(filling) > 0 {
		tags = fillTags
	}
	return testOne(ctx, dir, nil, log, tags, append(args, pkg))
}

// listFilling lists the packages that match patterns, and among them separately
// those that fill API types at random.
func listFilling(ctx context.Context, dir string, log io.Writer, patterns []string) (plain, filling []string, err error) {
	listed, err := list(ctx, dir, log, `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`, patterns)
	if err != nil {
		return nil, nil, err
	}
	plain, filling = splitFilling(listed)
	return plain, filling, nil
}

// splitFilling takes lines of a package and its tests' imports.
func splitFilling(listed string) (plain, filling []string) {
	for line := range strings.Lines(listed) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case pkg == "":
		case fillImports.MatchString(imports):
			filling = append(filling, pkg)
		default:
			plain = append(plain, pkg)
		}
	}
	return plain, filling
}
