package verbs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

func lintCommand(a *App) *cobra.Command {
	return verb("lint", "Check the series without a source tree, and our own code", `
The patches have to be what tree.lock says, with the trailers that CONTRIBUTING.md lists.
Our code has to pass gofmt, go vet, staticcheck, shellcheck and actionlint.`, "", a.Lint)
}

// Lint checks everything of ours that needs no source tree. The test modules
// compile against the tree, so their vet and staticcheck wait for it.
func (a *App) Lint(ctx context.Context) error { return a.do(ctx, "lint", a.lint()...) }

func (a *App) lint() []run.Task {
	return []run.Task{
		{Name: "patch series and feature gates", Do: a.lintSeries},
		{Name: "list of what fails without the change", Do: a.lintWithout},
		{Name: "tests that the KEP names", Do: a.kepTests(files.CheckSection)},
		{Name: "gofmt", Do: a.gofmt},
		{Name: "go vet", Do: a.vet},
		{Name: "go vet of scripts/ for macOS", Do: a.vetMacOS},
		{Name: "staticcheck", Do: a.staticcheck},
		{Name: "shellcheck and actionlint", Do: a.shellAndActions},
	}
}

// lintSeries checks the patch files and feature-gates.yaml.
func (a *App) lintSeries(context.Context, *run.Step) error {
	projects, err := a.WS.Projects()
	if err != nil {
		return err
	}
	for _, p := range projects {
		if err := series.Lint(p.Series(), series.Rules{Generated: p.Generated, MixGenerated: p.MixGenerated}); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	_, err = a.WS.Gates()
	return err
}

// files lists the files of ours that match patterns of git's, below the root. New ones count, ignored ones do not. It
// works without a repository, and in one that is another user's.
func (a *App) files(ctx context.Context, patterns ...string) ([]string, error) {
	return gitrepo.Open(a.WS.Root, nil).Lines(ctx, append([]string{"grep", "--no-index", "--exclude-standard", "--files-with-matches", "-e", "", "--"}, patterns...)...)
}

func (a *App) gofmt(ctx context.Context, s *run.Step) error {
	goFiles, err := a.files(ctx, "*.go")
	if err != nil {
		return err
	}
	out, err := run.Cmd{Dir: a.WS.Root, Log: s.Log, Name: "gofmt", Args: append([]string{"-s", "-l"}, goFiles...)}.Output(ctx)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		list := strings.Fields(string(out))
		return run.Refuse("not formatted: "+strings.Join(list, ", "), "gofmt -s", "gofmt -s -w "+strings.Join(list, " "))
	}
	return nil
}

// goModules are the folders of our Go modules, without those that need the tree as long as
// there is none.
func (a *App) goModules(s *run.Step) []string {
	mods := []string{filepath.Join(a.WS.Root, "scripts"), filepath.Join(a.integrationTests(), "promcheck"), filepath.Join(a.integrationTests(), "history")}
	if !a.tree(nil).Exists() {
		s.Sayf("test-integration and test-e2e need the tree (make apply): left out")
		return mods
	}
	return append(mods, a.integrationTests(), a.endToEndTests())
}

// moduleEnv keeps what does not need the tree out of the workspace, which names its modules.
func (a *App) moduleEnv(dir string) []string {
	if slices.Contains([]string{"scripts", "promcheck", "history"}, filepath.Base(dir)) {
		return []string{"GOWORK=off"}
	}
	return nil
}

func (a *App) vet(ctx context.Context, s *run.Step) error {
	var errs []error
	for _, m := range a.goModules(s) {
		errs = append(errs, toolchain.GoEnv(ctx, m, a.moduleEnv(m), s.Log, "vet", "-tags", toolchain.Tags, "./..."))
	}
	return errors.Join(errs...)
}

// vetMacOS sees that scripts/, with its tests, compiles on a contributor's Mac as well.
func (a *App) vetMacOS(ctx context.Context, s *run.Step) error {
	return toolchain.GoEnv(ctx, filepath.Join(a.WS.Root, "scripts"), []string{"GOWORK=off", "GOOS=darwin", "GOARCH=arm64"}, s.Log, "vet", "./...")
}

func (a *App) staticcheck(ctx context.Context, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, a.WS, s, toolchain.Staticcheck); err != nil {
		return err
	}
	var errs []error
	for _, m := range a.goModules(s) {
		env := append(toolchain.Eager(), a.moduleEnv(m)...)
		errs = append(errs, run.Cmd{Dir: m, Env: env, Log: s.Log, Name: filepath.Join(a.WS.Bin(), "staticcheck"), Args: []string{"-tags", toolchain.Tags, "./..."}}.Run(ctx))
	}
	return errors.Join(errs...)
}

func (a *App) shellAndActions(ctx context.Context, s *run.Step) error {
	if err := toolchain.EnsurePrograms(ctx, s, "shellcheck"); err != nil {
		return err
	}
	scripts, err := a.files(ctx, "*.sh", ".ci/run")
	if err != nil {
		return err
	}
	if err := (run.Cmd{Dir: a.WS.Root, Log: s.Log, Name: "shellcheck", Args: scripts}).Run(ctx); err != nil {
		return err
	}
	if err := toolchain.BuildTools(ctx, a.WS, s, toolchain.Actionlint); err != nil {
		return err
	}
	workflows, err := a.files(ctx, ".github/workflows/*.yaml")
	if err != nil {
		return err
	}
	return run.Cmd{Dir: a.WS.Root, Log: s.Log, Name: filepath.Join(a.WS.Bin(), "actionlint"), Args: workflows}.Run(ctx)
}
