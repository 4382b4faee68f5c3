// SPDX-License-Identifier: Apache-2.0

package upstreamsuites

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// Runner runs suites of the patched tree.
type Runner struct {
	// Tree is the folder of the tree.
	Tree string
	// Env is added to the environment: etcd has to be in PATH.
	Env []string
}

// Run runs suites one after the other: their API servers fail if they take more than 10 seconds to start. Only those that
// are not run with the gate off and on at once run beside the others: they wait more than they compute. Tests that fail are
// no error: the results say so.
func (r Runner) Run(ctx context.Context, suites []Suite, s *run.Step) (Results, error) {
	var pkgs []string
	for _, suite := range suites {
		pkgs = append(pkgs, suite.Package())
	}
	if err := toolchain.CompileTests(ctx, r.Tree, s.Log, pkgs...); err != nil {
		return nil, err
	}
	results := make(Results, len(suites))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for i, suite := range suites {
			s.Sayf("%d/%d %s", i+1, len(suites), suite.Folder)
			results[i].Suite = suite
			run := func() error { return r.offAndOn(ctx, &results[i], s) }
			if suite.Alone {
				group.Go(run)
			} else if err := run(); err != nil {
				return err
			}
		}
		return nil
	})
	return results, group.Wait()
}

// offAndOn runs a suite with the gate off and on.
func (r Runner) offAndOn(ctx context.Context, result *Result, s *run.Step) error {
	group, ctx := errgroup.WithContext(ctx)
	if result.Suite.Alone {
		group.SetLimit(1)
	}
	group.Go(func() (err error) { result.Off, err = r.run(ctx, result.Suite, false, s); return err })
	group.Go(func() (err error) { result.On, err = r.run(ctx, result.Suite, true, s); return err })
	return group.Wait()
}

// run writes what the tests print to a log of its own beside that of the step.
func (r Runner) run(ctx context.Context, suite Suite, gateOn bool, s *run.Step) (result toolchain.TestResult, err error) {
	gate := "off"
	if gateOn {
		gate = "on"
	}
	title := suite.Folder + ", gate " + gate
	err = s.WithLog(strings.ReplaceAll(suite.Folder, "/", "-")+"-"+gate, title, func(log io.Writer) error {
		tmp, err := os.MkdirTemp("", "suite")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		if err := linkSources(r.Tree, filepath.Join(tmp, sources)); err != nil {
			return err
		}
		args := []string{"-count=1", "-timeout", "90m"}
		if gateOn {
			overlay, err := switchOn(ctx, tmp, r.Tree, suite, log)
			if err != nil {
				return err
			}
			args = append(args, "-overlay", overlay)
		}
		env := append([]string{"TEST_SRCDIR=" + tmp, "TEST_WORKSPACE=" + sources}, r.Env...)
		if result, err = toolchain.TestOne(ctx, r.Tree, env, log, slices.Concat(args, []string{suite.Package()}, suite.Args)...); err != nil {
			return err
		}
		return checkResult(result, gateOn)
	})
	if err != nil {
		return result, err
	}
	s.Sayf("%s: %d tests, %d passed, %d skipped", title, len(result.Tests), result.Count(toolchain.Passed), result.Count(toolchain.Skipped))
	for _, name := range result.Failures() {
		s.Sayf("%s: FAIL %s", title, name)
	}
	return result, nil
}

// sources is the folder in which upstream's API servers look for their own files.
const sources = "src"

// linkSources links the modules of the tree at their import paths in dir: API
// servers look for their files at the paths of their sources, and -trimpath leaves
// only the import paths of those.
func linkSources(tree, dir string) error {
	modules, err := filepath.Glob(filepath.Join(tree, "staging", "src", "k8s.io", "*"))
	if err != nil {
		return err
	}
	parent := filepath.Join(dir, "k8s.io")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	errs := []error{os.Symlink(tree, filepath.Join(parent, "kubernetes"))}
	for _, m := range modules {
		errs = append(errs, os.Symlink(m, filepath.Join(parent, filepath.Base(m))))
	}
	return errors.Join(errs...)
}

// checkResult refuses a result that says nothing: of a suite that does not compile, or in which the gate was off.
// It takes our own test out of it, which has to have passed if the package has.
func checkResult(result toolchain.TestResult, gateOn bool) error {
	if result.BuildFailed {
		return errors.New("it does not compile")
	}
	if gateOn {
		if o := result.Tests[gateIsOn]; o != toolchain.Passed && (result.Package == toolchain.Passed || o == toolchain.Failed) {
			return fmt.Errorf("the gate was not on for all tests: %s has the outcome %q", gateIsOn, o)
		}
		delete(result.Tests, gateIsOn)
	}
	return nil
}

// gateTest is the file that switches the gate on. Its name sorts last, so that its
// test runs after all others.
const gateTest = "zz_capacityv2_gate_test.go"

// gateIsOn is the test in it, which is not one of the suite's.
const gateIsOn = "TestZZCapacityV2GateIsOn"

// gateOn has the name of the suite's package and gateIsOn as its arguments. The servers of the
// suite copy the gates of the test binary. A default, unlike a gate that is set,
// does not stop those that emulate a version without the gate.
const gateOn = `package %s

import (
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

func init() {
	if err := utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.CSIStorageCapacityV2, true); err != nil {
		panic(err)
	}
}

func %s(t *testing.T) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.CSIStorageCapacityV2) {
		t.Error("the gate is off, so the other tests have not tested it")
	}
}
`

// switchOn adds gateOn to a suite, for the go command alone: the file and its overlay are
// written to tmp. It returns the path of the overlay.
func switchOn(ctx context.Context, tmp, tree string, suite Suite, log io.Writer) (string, error) {
	pkg, err := toolchain.PackageName(ctx, tree, log, suite.Package())
	if err != nil {
		return "", err
	}
	file := filepath.Join(tmp, gateTest)
	if err := os.WriteFile(file, fmt.Appendf(nil, gateOn, pkg, gateIsOn), 0o644); err != nil {
		return "", err
	}
	return toolchain.WriteOverlay(tmp, map[string]string{filepath.Join(tree, suite.Package(), gateTest): file})
}
