// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/build/release"
	"capacityv2.internal/scripts/check/bench"
	"capacityv2.internal/scripts/check/integration"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

func benchVerb() *cobra.Command {
	var only *regexp.Regexp
	c := cli.Verb("bench", "Run Go's benchmarks and scheduler_perf, with upstream's code in the same run", `
It takes 35 to 75 minutes on an idle machine, and writes to docs/benchmarks the results, what benchstat
says of them, and the pictures. With --only, it prints what benchstat says, and writes nothing there.`,
		"  capacityv2 bench --only 'worst cases'", func(ctx context.Context, ws workspace.Workspace) error { return benchmarks(ctx, ws, only) })
	cli.PatternFlag(c, &only, "only", "only runs whose name matches")
	return c
}

// benchmarks measures the selected runs. A page is written from whole runs only.
func benchmarks(ctx context.Context, ws workspace.Workspace, only *regexp.Regexp) error {
	runs, err := bench.Select(cmp.Or(only, everything))
	if err != nil {
		return err
	}
	v, err := release.ReadVersion(ws)
	if err != nil {
		return err
	}
	tasks := patch.Applied(ws, build.Tools(ws, "build etcd", toolchain.Etcd))
	folders := map[string]string{"kubernetes": ws.Tree(), "test-integration": ws.Integration()}
	results := map[string][]byte{}
	var pages []string
	for _, r := range runs {
		if !slices.Contains(pages, r.Page) {
			pages = append(pages, r.Page)
		}
		tasks = append(tasks, run.Task{Name: r.Name, Do: func(ctx context.Context, s *run.Step) error {
			measured, err := r.Measure(ctx, v.String(), folders[r.In], integration.Env(ws), s.Log)
			results[r.Page] = append(results[r.Page], measured...)
			return err
		}})
	}
	tasks = append(tasks, run.Task{Name: "compare", Do: func(ctx context.Context, s *run.Step) error {
		dir := filepath.Join(ws.Root, "docs", "benchmarks")
		if only != nil {
			dir = filepath.Dir(s.LogPath)
		}
		for _, page := range pages {
			raw := filepath.Join(dir, page+".txt")
			if err := os.WriteFile(raw, results[page], 0o644); err != nil {
				return err
			}
			comparison, err := bench.Compare(ctx, filepath.Join(ws.Root, "scripts"), raw, s.Log)
			if err != nil {
				return err
			}
			if only != nil {
				s.AtEnd("%s\n%s", raw, comparison)
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, page+"-benchstat.txt"), comparison, 0o644); err != nil {
				return err
			}
			s.Sayf("written: %s, and what benchstat says beside it", raw)
		}
		if only != nil {
			return nil
		}
		return bench.DrawAll(dir)
	}})
	return ws.Run(ctx, "bench", tasks...)
}
