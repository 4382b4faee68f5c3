package verbs

import (
	"context"
	"path/filepath"
	"time"

	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// govulncheck builds what a release has, and looks for known vulnerabilities in it.
func (a *App) govulncheck(ctx context.Context, database string) error {
	return a.do(ctx, "govulncheck", a.apply(run.Task{Name: "vulnerabilities of the programs", Do: func(ctx context.Context, s *run.Step) error {
		projects, err := a.WS.Projects()
		if err != nil {
			return err
		}
		var all []string
		for _, p := range projects {
			if programs := release.Programs(p.Name); len(programs) > 0 {
				if err := release.BuildComponents(ctx, a.WS, p.Name, s.Log, a.WS.Components(), programs...); err != nil {
					return err
				}
				all = append(all, programs...)
			}
		}
		if err := toolchain.BuildTools(ctx, a.WS, s, toolchain.Govulncheck); err != nil {
			return err
		}
		list := filepath.Join(a.WS.Root, "docs", "vulnerabilities.yaml")
		return release.CheckVulnerabilities(ctx, filepath.Join(a.WS.Bin(), "govulncheck"), database, a.WS.Components(), all, list, time.Now(), s.Log)
	}})...)
}
