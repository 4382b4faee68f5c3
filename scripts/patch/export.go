// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

func exportVerb() *cobra.Command {
	return cli.Verb("export", "Write the commits of the trees back as patch files", `
The bytes depend on nothing but the commits. All patches are checked before one is written, and one that has not changed is
not touched. tree.lock is written, too. Patch files that have changed, as after a merge, are put on the base before, unless
the tree has commits of its own.`, "", func(ctx context.Context, ws workspace.Workspace) error {
		var prepared []prepared
		return ws.Run(ctx, "export", append(Bases(ws, ""),
			ws.Each("check the commits as patches", "", func(ctx context.Context, p workspace.Project, s *run.Step) error {
				e, err := prepare(ctx, ws, p, s)
				prepared = append(prepared, e)
				return err
			}),
			run.Task{Name: "write the patch files", Do: func(ctx context.Context, s *run.Step) error {
				for _, e := range prepared {
					if err := e.write(ctx, s); err != nil {
						return fmt.Errorf("%s: %w", e.project.Name, err)
					}
				}
				return nil
			}})...)
	})
}

// prepared is the export of a project that is not written yet.
type prepared struct {
	project workspace.Project
	series.Export
}

func prepare(ctx context.Context, ws workspace.Workspace, p workspace.Project, s *run.Step) (prepared, error) {
	o, err := baseOptions(ws, p)
	if err != nil {
		return prepared{}, err
	}
	s.Sayf("%s: %s", p.Title, p.Tree())
	e, err := series.Prepare(ctx, p.Repo(s.Log), p.Series(), o.Version, rules(p), s)
	return prepared{p, e}, err
}

func (e prepared) write(ctx context.Context, s *run.Step) error {
	changed, err := e.Write(ctx, e.project.Repo(s.Log), e.project.Series())
	switch {
	case err != nil:
		return err
	case len(changed) == 0:
		s.Sayf("%s: no patch changed", e.project.Title)
	default:
		s.Sayf("%s: wrote %s", e.project.Title, strings.Join(changed, ", "))
	}
	return nil
}
