package verbs

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/overrides"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/series"
)

// overridesList names the modules that the series change.
func (a *App) overridesList() string {
	return filepath.Join(a.WS.Root, "staging-overrides", "modules.yaml")
}

func overridesCommand(a *App) *cobra.Command {
	return verb("overrides", "Write a file:// module proxy with the patched modules, and the replace lines to paste", `
With them, another Go module builds against the patched API without a registry.
staging-overrides/example is one.`, "", a.Overrides)
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
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return overrides.Result{}, err
	}
	modules, err := a.overriddenModules()
	if err != nil {
		return overrides.Result{}, err
	}
	return overrides.Write(ctx, overrides.Options{Modules: modules, Revision: v.Revision, Out: filepath.Join(a.WS.Work, "overrides")}, s)
}

// overriddenModules are those that another Go module has to override.
func (a *App) overriddenModules() ([]overrides.Module, error) {
	projects, err := a.WS.Projects()
	if err != nil {
		return nil, err
	}
	var modules []overrides.Module
	for _, p := range projects {
		if !p.Library && !p.Staging {
			continue
		}
		o, err := a.baseOptions(p)
		if err != nil {
			return nil, err
		}
		if p.Library {
			modules = append(modules, overrides.Module{Path: p.Module, Tree: p.Tree(), Version: o.Version})
			continue
		}
		staging, err := base.StagingVersion(o.Version)
		if err != nil {
			return nil, err
		}
		patches, err := series.Read(p.Series())
		if err != nil {
			return nil, err
		}
		for _, path := range overrides.Staging(patches) {
			modules = append(modules, overrides.Module{Path: path, Tree: p.Tree(), Folder: overrides.StagingDir + path, Version: staging})
		}
	}
	return modules, nil
}

// overridden are the paths of those modules.
func (a *App) overridden() ([]string, error) {
	modules, err := a.overriddenModules()
	var paths []string
	for _, m := range modules {
		paths = append(paths, m.Path)
	}
	return paths, err
}
