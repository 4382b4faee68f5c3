package verbs

import (
	"context"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// buildControlPlane builds those components of the series of which [App.buildStock] builds the stock ones.
func (a *App) buildControlPlane(ctx context.Context, s *run.Step) error {
	return release.BuildComponents(ctx, a.WS, workspace.Kubernetes, s.Log, a.WS.Components(), stockPrograms...)
}

// skewPage is the test that docs/skew.md has all combinations.
const skewPage = "^TestPage$"

func (a *App) testSkew(ctx context.Context, s *run.Step, args ...string) error {
	return a.integration(ctx, s, nil, append([]string{"-count=1", "./skew"}, args...)...)
}

// skew runs all combinations of programs with and without the series, and writes the tables of
// docs/skew.md.
func (a *App) skew(ctx context.Context) error {
	return a.do(ctx, "skew", a.apply(a.buildEtcd(),
		run.Task{Name: "build the stock control plane", Do: func(ctx context.Context, s *run.Step) error { return a.buildStock(ctx, s, stockPrograms...) }},
		a.buildStockProvisioner(),
		run.Task{Name: "build the control plane", Do: a.buildControlPlane},
		a.buildProvisioner(),
		run.Task{Name: "all combinations", Do: func(ctx context.Context, s *run.Step) error {
			report := filepath.Join(filepath.Dir(s.LogPath), "skew.md")
			if err := os.RemoveAll(report); err != nil {
				return err
			}
			if err := a.testSkew(ctx, s, "-skip", skewPage, "-v", "-parallel", sideBySide, "-timeout", "3h", "-skew.all", "-skew.report="+report); err != nil {
				return err
			}
			tables, err := os.ReadFile(report)
			if err != nil {
				return err
			}
			if err := files.UpdateSection(filepath.Join(a.WS.Root, "docs", "skew.md"), "make nightly ONLY=skew", string(tables)); err != nil {
				return err
			}
			return a.testSkew(ctx, s, "-run", skewPage)
		}},
	)...)
}
