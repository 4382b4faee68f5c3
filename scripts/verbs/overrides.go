package verbs

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/overrides"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
)

func overridesCommand(a *App) *cobra.Command {
	return verb("overrides", "Write a file:// module proxy with the patched modules, and the replace lines to paste", `
With them, another Go module builds against the patched API without a registry.
staging-overrides/example is one.`, "", a.Overrides)
}

// Overrides writes the patched staging modules as a module proxy of files, and
// the lines with which another Go module uses it.
func (a *App) Overrides(ctx context.Context) error {
	return a.do(ctx, "overrides", a.apply(run.Task{Name: "write the module proxy", Do: func(ctx context.Context, s *run.Step) error {
		res, err := a.writeOverrides(ctx, s)
		s.AtEnd("module proxy: %s\n%s", res.Goproxy, res.Replace())
		return err
	}})...)
}

func (a *App) writeOverrides(ctx context.Context, s *run.Step) (overrides.Result, error) {
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return overrides.Result{}, err
	}
	modules, err := overrides.Modules(a.WS)
	if err != nil {
		return overrides.Result{}, err
	}
	return overrides.Write(ctx, modules, v.Revision, filepath.Join(a.WS.Work, "overrides"), s)
}

// overridesList does something with the list of the overridden modules: it checks or writes it.
func (a *App) overridesList(do func(path string, modules []overrides.Module) error) error {
	modules, err := overrides.Modules(a.WS)
	if err != nil {
		return err
	}
	return do(filepath.Join(a.WS.Root, "staging-overrides", "modules.yaml"), modules)
}
