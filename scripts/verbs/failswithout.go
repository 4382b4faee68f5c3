package verbs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/withoutit"
)

func failsWithoutCommand(a *App) *cobra.Command {
	var suite *regexp.Regexp
	c := verb("fails-without", "Check that the integration tests fail with the gate off and on the stock server", `
It compares what each test does with test-integration/fails-without.yaml, and writes the
table of test-integration/README.md. A test that passes where it has to fail is an error.`,
		"  capacityv2 fails-without --suite api", func(ctx context.Context) error { return a.FailsWithout(ctx, suite) })
	patternFlag(c, &suite, "suite", "only suites whose folder in test-integration matches")
	return c
}

// expectations is the list of what our integration tests do without the change.
func (a *App) expectations() (withoutit.Expectations, error) {
	return withoutit.Read(filepath.Join(a.WS.Root, "test-integration", "fails-without.yaml"))
}

// specExpectations is the same list for our end-to-end specs.
func (a *App) specExpectations() (withoutit.Expectations, error) {
	return withoutit.Read(filepath.Join(a.WS.Root, "test-e2e", "fails-without.yaml"))
}

// specSuite is the folder of the end-to-end test program.
func (a *App) specSuite() string { return filepath.Join(a.WS.Root, "test-e2e", "suite") }

func (a *App) integrationReadme() string {
	return filepath.Join(a.WS.Root, "test-integration", "README.md")
}

// FailsWithout runs the integration tests whose folder matches (nil: all) with the
// feature gate off and on the stock server, compares what each does with
// fails-without.yaml, and writes the table of the README from that.
func (a *App) FailsWithout(ctx context.Context, folder *regexp.Regexp) error {
	folder = cmp.Or(folder, everything)
	list, err := a.expectations()
	if err != nil {
		return err
	}
	var packages []string
	tasks := a.apply(progress.Task{Name: "build etcd", Do: a.buildEtcd}, progress.Task{Name: "build the stock kube-apiserver", Do: a.buildStockAPIServer},
		progress.Task{Name: "compile the tests", Do: func(ctx context.Context, s *progress.Step) error {
			return toolchain.CompileTests(ctx, filepath.Join(a.WS.Root, "test-integration"), s.Log, packages...)
		}})
	var differ []string
	var results []toolchain.TestResult
	for _, suite := range list.Suites {
		targets := slices.DeleteFunc(slices.Clone(withoutit.Targets), func(t string) bool { return !suite.Runs(t) })
		if !folder.MatchString(suite.Folder) || len(targets) == 0 {
			continue
		}
		packages = append(packages, "./"+suite.Folder)
		tasks = append(tasks, progress.Task{Name: suite.Folder + ", " + strings.Join(targets, " and "), Do: func(ctx context.Context, s *progress.Step) error {
			outcomes := make([]toolchain.TestResult, len(targets))
			group, ctx := errgroup.WithContext(ctx)
			for i, target := range targets {
				group.Go(func() (err error) {
					outcomes[i], err = a.runWithout(ctx, suite.Folder, target, s)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				return err
			}
			results = append(results, outcomes...)
			for i, target := range targets {
				s.Sayf("%s: %d tests, %d of them fail", target, len(outcomes[i].Tests), len(outcomes[i].Failures()))
				for _, d := range list.Check(suite, target, outcomes[i]) {
					s.Sayf("%s: %s", target, d)
					differ = append(differ, fmt.Sprintf("%s, %s: %s (log: %s)", suite.Folder, target, d, s.LogPath))
				}
			}
			return nil
		}})
	}
	if len(packages) == 0 {
		return progress.Refuse(fmt.Sprintf("no suite matches %q", folder), "a regular expression for folders in test-integration", "make fails-without SUITE=api")
	}
	return a.do(ctx, "fails-without", append(tasks, progress.Task{Name: "compare with the list", Do: func(context.Context, *progress.Step) error {
		if folder == everything {
			for _, variant := range list.Unused(results) {
				differ = append(differ, "no test has a subtest for the variant "+variant)
			}
		}
		if len(differ) > 0 {
			return progress.Refuse("tests do something else without the change:\n    "+strings.Join(differ, "\n    "), "what test-integration/fails-without.yaml says",
				"fix the test, or the list where it is right that the test passes")
		}
		return list.Write(a.integrationReadme())
	}})...)
}

// waiting is how many tests of a suite run at the same time without the change: most wait
// in vain until their time is over.
var waiting = strconv.Itoa(3 * runtime.NumCPU())

// runWithout runs the tests of a folder on a target, with a log of its own beside that
// of the step.
func (a *App) runWithout(ctx context.Context, folder, target string, s *progress.Step) (result toolchain.TestResult, err error) {
	log, err := s.Beside(target)
	if err != nil {
		return result, err
	}
	defer log.Close()
	fmt.Fprintf(s.Log, "# %s: see %s\n", target, log.Name())
	var raw bytes.Buffer
	env := append(a.integrationEnv(), "CAPACITYV2_TARGET="+target)
	if err := toolchain.TestJSON(ctx, filepath.Join(a.WS.Root, "test-integration"), env, log, &raw, "-count=1", "-parallel", waiting, "-timeout", "90m", "./"+folder); err != nil {
		return result, fmt.Errorf("%s: %w (log: %s)", target, err, log.Name())
	}
	result, err = toolchain.ReadTestResult(&raw)
	if err == nil && result.BuildFailed {
		err = fmt.Errorf("./%s does not compile (log: %s)", folder, log.Name())
	}
	return result, err
}

// lintWithout checks that the list has each test, and that the table of the README is
// that of the list, and reads the lists of the end-to-end specs.
func (a *App) lintWithout(context.Context, *progress.Step) error {
	if _, err := a.specExpectations(); err != nil {
		return err
	}
	if _, err := e2e.ReadSelection(a.specSuite()); err != nil {
		return err
	}
	list, err := a.expectations()
	if err != nil {
		return err
	}
	drift, err := list.Drift(filepath.Join(a.WS.Root, "test-integration"))
	if err != nil {
		return err
	}
	if len(drift) > 0 {
		return progress.Refuse("test-integration/fails-without.yaml:\n    "+strings.Join(drift, "\n    "), "each test of test-integration once",
			"add the test with what it does without the change, or remove it; make fails-without checks that")
	}
	return list.CheckTable(a.integrationReadme())
}
