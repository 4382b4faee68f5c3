package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/suites"
)

func upstreamSuitesCommand(a *App) *cobra.Command {
	var suite string
	c := verb("upstream-suites", "Run upstream's own integration suites with the gate off and on, and write docs/upstream-suites.md", `
All of them take hours. Results are kept for a tree, so that suites can be run one by one.`,
		"  capacityv2 upstream-suites --suite scheduler/queueing", func(ctx context.Context) error { return a.UpstreamSuites(ctx, suite) })
	c.Flags().StringVar(&suite, "suite", "", "only those whose folder in test/integration matches this regular expression")
	return c
}

// UpstreamSuites runs those of upstream's suites whose folder matches pattern,
// with the gate off and on, and writes docs/upstream-suites.md from these and earlier
// runs on the same tree. A test that fails with the gate on only is an error.
func (a *App) UpstreamSuites(ctx context.Context, pattern string) error {
	folder, err := regexp.Compile(pattern)
	if err != nil {
		return progress.Refuse(fmt.Sprintf("--suite is %q: %v", pattern, err), "a regular expression for folders in test/integration", "make upstream-suites SUITE=scheduler/")
	}
	selected := suites.Select(folder)
	if len(selected) == 0 {
		return progress.Refuse(fmt.Sprintf("no suite matches %q", pattern), "one of: "+folders(suites.All), "make upstream-suites SUITE=scheduler/")
	}
	var runner suites.Runner
	tasks := a.apply(progress.Task{Name: "build etcd", Do: a.buildEtcd}, progress.Task{Name: "folder of the results", Do: func(ctx context.Context, s *progress.Step) error {
		tree, err := a.tree(s.Log).Tree(ctx, "HEAD")
		runner = suites.Runner{Tree: a.WS.Tree(), Results: filepath.Join(a.WS.Work, "upstream-suites", tree), Env: []string{a.binPath()}}
		s.Sayf("%s", runner.Results)
		return err
	}})
	for _, suite := range selected {
		for _, gate := range []struct {
			name string
			on   bool
		}{{"off", false}, {"on", true}} {
			tasks = append(tasks, progress.Task{Name: suite.Folder + ", gate " + gate.name, Do: func(ctx context.Context, s *progress.Step) error {
				return runner.Run(ctx, suite, gate.on, s)
			}})
		}
	}
	return a.do(ctx, "upstream-suites", append(tasks, progress.Task{Name: "report", Do: func(_ context.Context, s *progress.Step) error {
		return a.reportSuites(runner, selected, s)
	}})...)
}

// reportSuites writes the report, and returns an error if a selected suite is worse
// with the gate on.
func (a *App) reportSuites(runner suites.Runner, selected []suites.Suite, s *progress.Step) error {
	rows, missing, err := suites.Rows(runner, suites.All)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := suites.WriteReport(&text, fmt.Sprintf("a machine with %d cores", runtime.NumCPU()), rows, missing); err != nil {
		return err
	}
	path := filepath.Join(a.WS.Root, "docs", "upstream-suites.md")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		return err
	}
	s.Sayf("wrote %s", path)
	if len(missing) > 0 {
		s.Sayf("not run on this tree: %s", folders(missing))
	}
	// An earlier failure of a suite that was not selected is in the report.
	rows, _, err = suites.Rows(runner, selected)
	return errors.Join(err, suites.Check(rows))
}

func folders(list []suites.Suite) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Folder)
	}
	return strings.Join(names, ", ")
}
