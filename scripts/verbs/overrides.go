package verbs

import (
	"context"
	"path/filepath"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/overrides"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/series"
)

// overridesList names the staging modules that the series changes.
func (a *App) overridesList() string {
	return filepath.Join(a.WS.Root, "staging-overrides", "modules.yaml")
}

// Overrides writes the patched staging modules as a module proxy of files, and
// the lines with which another Go module uses it.
func (a *App) Overrides(ctx context.Context) error {
	r := a.reporter("overrides")
	var res overrides.Result
	err := r.Run(ctx, a.apply(progress.Task{Name: "write the module proxy", Do: func(ctx context.Context, s *progress.Step) (err error) {
		res, err = a.writeOverrides(ctx, s)
		return err
	}})...)
	if err != nil {
		return err
	}
	r.Printf("module proxy: %s\n%s", res.Proxy(), res.Replace())
	r.Done()
	return nil
}

func (a *App) writeOverrides(ctx context.Context, s *progress.Step) (overrides.Result, error) {
	patches, err := series.Read(a.WS.Series())
	if err != nil {
		return overrides.Result{}, err
	}
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return overrides.Result{}, err
	}
	staging, err := base.StagingVersion(v.Base)
	if err != nil {
		return overrides.Result{}, err
	}
	return overrides.Write(ctx, overrides.Options{
		Tree: a.WS.Tree(), Modules: overrides.Modules(patches), Version: staging, Revision: v.Revision,
		Out: filepath.Join(a.WS.Work, "overrides"),
	}, s)
}
