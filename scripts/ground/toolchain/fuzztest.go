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

// fuzzTags are [Tags] without "notest", which takes away the methods with which
// API types fill themselves at random: round-trip tests fail without them.
const fuzzTags = "selinux,grpcnotrace"

// fuzzImports are what a test imports that fills API types at random.
var fuzzImports = regexp.MustCompile(`\b(sigs\.k8s\.io/randfill|k8s\.io/apimachinery/pkg/api/apitesting/\w+)\b`)

// UnitTest is [Test] for the packages that match patterns, with all that go vet checks, so
// that what it has found out about their imports serves here. Packages that fill API types
// at random are compiled in the way they need, the others in that of the components, so
// that little is compiled twice.
func UnitTest(ctx context.Context, dir string, log, out io.Writer, args []string, patterns ...string) error {
	plain, fuzzing, err := listFuzzing(ctx, dir, log, patterns)
	if err != nil {
		return err
	}
	var errs []error
	for _, group := range []struct {
		tags string
		pkgs []string
	}{{Tags, plain}, {fuzzTags, fuzzing}} {
		if len(group.pkgs) > 0 {
			errs = append(errs, goTest(ctx, dir, nil, log, out, group.tags, slices.Concat([]string{"-vet=all"}, args, group.pkgs)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(plain)+len(fuzzing) == 0 {
		return fmt.Errorf("no package matches %s", strings.Join(patterns, " "))
	}
	return nil
}

// UnitTestOne is [TestOne] for a package that is compiled as [UnitTest] does.
func UnitTestOne(ctx context.Context, dir string, log io.Writer, pkg string, args ...string) (TestResult, error) {
	_, fuzzing, err := listFuzzing(ctx, dir, log, []string{pkg})
	if err != nil {
		return TestResult{}, err
	}
	tags := Tags
	if len(fuzzing) > 0 {
		tags = fuzzTags
	}
	return testOne(ctx, dir, nil, log, tags, append(args, pkg))
}

// listFuzzing lists the packages that match patterns, and among them separately
// those that fill API types at random.
func listFuzzing(ctx context.Context, dir string, log io.Writer, patterns []string) (plain, fuzzing []string, err error) {
	listed, err := list(ctx, dir, log, `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`, patterns)
	if err != nil {
		return nil, nil, err
	}
	plain, fuzzing = splitFuzzing(listed)
	return plain, fuzzing, nil
}

// splitFuzzing takes lines of a package and its tests' imports.
func splitFuzzing(listed string) (plain, fuzzing []string) {
	for line := range strings.Lines(listed) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case pkg == "":
		case fuzzImports.MatchString(imports):
			fuzzing = append(fuzzing, pkg)
		default:
			plain = append(plain, pkg)
		}
	}
	return plain, fuzzing
}
