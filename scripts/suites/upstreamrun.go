package suites

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

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

// UpstreamRunner runs suites of the patched tree.
type UpstreamRunner struct {
	// Tree is the folder of the tree.
	Tree string
	// Env is added to the environment: etcd has to be in PATH.
	Env []string
	// Workers is how many suites run side by side, nearly all of them with the gate off and on at
	// once: most of their tests wait more than they compute.
	Workers int
}

// Compile compiles the suites.
func (r UpstreamRunner) Compile(ctx context.Context, suites []Upstream, s *progress.Step) error {
	var pkgs []string
	for _, suite := range suites {
		pkgs = append(pkgs, suite.pkg())
	}
	return toolchain.CompileTests(ctx, r.Tree, s.Log, pkgs...)
}

// Run runs suites with the gate off and on. Tests that fail are no error: the results say so.
func (r UpstreamRunner) Run(ctx context.Context, suites []Upstream, s *progress.Step) (UpstreamResults, error) {
	results := make(UpstreamResults, len(suites))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, r.Workers))
	for i, suite := range suites {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.Sayf("%d/%d %s", i+1, len(suites), suite.Folder)
			results[i].Suite = suite
			return r.both(ctx, &results[i], s)
		})
	}
	return results, group.Wait()
}

// both runs a suite with the gate off and on.
func (r UpstreamRunner) both(ctx context.Context, result *UpstreamResult, s *progress.Step) error {
	group, ctx := errgroup.WithContext(ctx)
	if result.Suite.Alone {
		group.SetLimit(1)
	}
	group.Go(func() (err error) { result.Off, err = r.run(ctx, result.Suite, false, s); return err })
	group.Go(func() (err error) { result.On, err = r.run(ctx, result.Suite, true, s); return err })
	return group.Wait()
}

// run writes what the tests print to a log of its own beside that of the step.
func (r UpstreamRunner) run(ctx context.Context, suite Upstream, gateOn bool, s *progress.Step) (result toolchain.TestResult, err error) {
	gate := "off"
	if gateOn {
		gate = "on"
	}
	title := suite.Folder + ", gate " + gate
	err = s.Beside(strings.ReplaceAll(suite.Folder, "/", "-")+"-"+gate, title, func(log io.Writer) error {
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
		if result, err = toolchain.TestOne(ctx, r.Tree, env, log, slices.Concat(args, []string{suite.pkg()}, suite.Args)...); err != nil {
			return err
		}
		return checkUpstream(result, gateOn)
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

// checkUpstream refuses a result that says nothing: of a suite that does not compile, or in which the gate was off.
// It takes our own test out of it, which has to have passed if the package has.
func checkUpstream(result toolchain.TestResult, gateOn bool) error {
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
