package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/suites"
)

// upstreamSuites runs those of upstream's suites whose folder matches (nil: all), with the gate
// off and on. A test that fails is an error.
func (a *App) upstreamSuites(ctx context.Context, folder *regexp.Regexp) error {
	selected, err := suites.SelectUpstream(cmp.Or(folder, everything))
	if err != nil {
		return err
	}
	return a.do(ctx, "upstream-suites", a.apply(a.buildEtcd(),
		run.Task{Name: "compile the suites", Do: func(ctx context.Context, s *run.Step) error {
			return a.suiteRunner(2).Compile(ctx, selected, s)
		}},
		run.Task{Name: fmt.Sprintf("%d suites, gate off and on", len(selected)), Do: func(ctx context.Context, s *run.Step) error {
			results, err := a.suiteRunner(2).Run(ctx, selected, s)
			if err != nil {
				return err
			}
			return errors.Join(a.keepResult("upstream-suites.md", results.Table()), results.Check())
		}},
	)...)
}

func (a *App) suiteRunner(workers int) suites.UpstreamRunner {
	return suites.UpstreamRunner{Tree: a.WS.Tree(), Env: []string{a.binPath()}, Workers: workers}
}

// keepResult prints a table, and leaves it in a file for CI.
func (a *App) keepResult(name, table string) error {
	path := filepath.Join(a.WS.Work, "results", name)
	fmt.Fprintf(a.Out, "%s\n%s", path, table)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(table), 0o644))
}
