package verbs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/suites"
	"capacityv2.internal/scripts/toolchain"
)

func upstreamSuitesCommand(a *App) *cobra.Command {
	var suite *regexp.Regexp
	c := verb("upstream-suites", "Run upstream's own integration suites with the gate off and on, and write docs/upstream-suites.md", `
All of them take hours. The report keeps the results of the others, so that suites can be
run one by one.`,
		"  capacityv2 upstream-suites --suite scheduler/queueing", func(ctx context.Context) error { return a.UpstreamSuites(ctx, suite) })
	patternFlag(c, &suite, "suite", "only suites whose folder in test/integration matches")
	return c
}

// UpstreamSuites runs those of upstream's suites whose folder matches (nil: all),
// with the gate off and on, and puts the results into docs/upstream-suites.md. A test
// that fails is an error.
func (a *App) UpstreamSuites(ctx context.Context, folder *regexp.Regexp) error {
	selected := suites.Select(cmp.Or(folder, everything))
	if len(selected) == 0 {
		return progress.Refuse(fmt.Sprintf("no suite matches %q", folder), "one of: "+folders(suites.All), "make upstream-suites SUITE=scheduler/")
	}
	runner := suites.Runner{Tree: a.WS.Tree(), Env: []string{a.binPath()}}
	var rows []suites.Row
	return a.do(ctx, "upstream-suites", a.apply(
		progress.Task{Name: "build etcd", Do: a.buildEtcd},
		progress.Task{Name: "compile the suites", Do: func(ctx context.Context, s *progress.Step) error { return runner.Compile(ctx, selected, s) }},
		progress.Task{Name: fmt.Sprintf("%d suites, gate off and on", len(selected)), Do: func(ctx context.Context, s *progress.Step) error {
			tree, err := a.tree(s.Log).Tree(ctx, "HEAD")
			if err != nil {
				return err
			}
			return runner.Run(ctx, selected, s, func(suite suites.Suite, off, on toolchain.TestResult) error {
				row := suites.NewRow(suite, tree, off, on)
				rows = append(rows, row)
				return a.reportSuite(row, tree)
			})
		}},
		progress.Task{Name: "compare", Do: func(context.Context, *progress.Step) error { return suites.Check(rows) }},
	)...)
}

// reportSuite puts the row of a suite into the report. The others stay.
func (a *App) reportSuite(row suites.Row, tree string) error {
	data := filepath.Join(a.WS.Root, "docs", "upstream-suites.json")
	rows, err := suites.ReadRows(data)
	if err != nil {
		return err
	}
	rows[row.Folder] = row
	if err := suites.WriteRows(data, rows); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := suites.WriteReport(&text, fmt.Sprintf("a machine with %d cores", runtime.NumCPU()), tree, rows); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.WS.Root, "docs", "upstream-suites.md"), text.Bytes(), 0o644)
}

func folders(list []suites.Suite) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Folder)
	}
	return strings.Join(names, ", ")
}
