package check

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/check/e2e"
	"capacityv2.internal/scripts/check/suites"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

func lintVerb() *cobra.Command {
	return cli.Verb("lint", "Check the series without a source tree, and our own code", `
The patches have to be what tree.lock says, with the trailers that CONTRIBUTING.md lists.
Our code has to pass gofmt, go vet, staticcheck, shellcheck and actionlint, the rules of docs/monitoring their tests, and
so has the tooling. test-integration and test-e2e compile against the tree, so their vet and staticcheck wait for it.`, "",
		func(ctx context.Context, ws workspace.Workspace) error {
			return ws.Run(ctx, "lint", patch.Lint(ws),
				ws.Task("lists of what fails without the change", lintLists), ws.Task("gofmt", gofmt), ws.Task("go vet", vet),
				ws.Task("go vet of scripts/ for macOS", vetMacOS), ws.Task("staticcheck", staticcheck),
				ws.Task("what is compiled for the tree serves our tests", compiledOnce),
				ws.Task("shellcheck and actionlint", shellAndActions), ws.Task("tests of the alerts", testAlerts), ws.Task("tests of the tooling", testScripts))
		})
}

// lintLists checks the lists of what fails without the change, and of the specs.
func lintLists(_ context.Context, ws workspace.Workspace, _ *run.Step) error {
	if _, err := suites.ReadList(ws.EndToEnd()); err != nil {
		return err
	}
	if _, err := e2e.ReadSelection(specSuite(ws)); err != nil {
		return err
	}
	return suites.LintList(ws.Integration())
}

// testAlerts runs the tests of the rules for Prometheus. Each alert has to fire in one.
func testAlerts(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, ws, s, toolchain.Promtool); err != nil {
		return err
	}
	promtool := run.Cmd{Dir: filepath.Join(ws.Root, "docs", "monitoring"), Log: s.Log, Name: filepath.Join(ws.Bin(), "promtool"), Args: []string{"test", "rules", "rules_test.yaml"}}
	if err := promtool.Run(ctx); err != nil {
		return err
	}
	promtool.Args = []string{"check", "rules", "rules.yaml"}
	return promtool.Run(ctx)
}

// testScripts does not take results from the cache: it does not notice changes of
// files outside of the module, such as the Makefile.
func testScripts(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return toolchain.Test(ctx, filepath.Join(ws.Root, "scripts"), []string{"GOWORK=off"}, s.Log, s.Out, "-count=1", "./...")
}

// ourFiles lists the files of ours that match patterns of git's, below the root. New ones count, ignored ones do not. It
// works without a repository, and in one that is another user's.
func ourFiles(ctx context.Context, ws workspace.Workspace, patterns ...string) ([]string, error) {
	return gitrepo.Open(ws.Root, nil).Lines(ctx, append([]string{"grep", "--no-index", "--exclude-standard", "--files-with-matches", "-e", "", "--"}, patterns...)...)
}

func gofmt(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	goFiles, err := ourFiles(ctx, ws, "*.go")
	if err != nil {
		return err
	}
	out, err := run.Cmd{Dir: ws.Root, Log: s.Log, Name: "gofmt", Args: append([]string{"-s", "-l"}, goFiles...)}.Output(ctx)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		list := strings.Fields(string(out))
		return run.Refuse(run.Refusal{
			Found:    "not formatted: " + strings.Join(list, ", "),
			Expected: "gofmt -s",
			Run:      "gofmt -s -w " + strings.Join(list, " "),
		})
	}
	return nil
}

// goModules are the folders of our Go modules, without those that need the tree as long as
// there is none.
func goModules(ws workspace.Workspace, s *run.Step) []string {
	mods := []string{filepath.Join(ws.Root, "scripts"), filepath.Join(ws.Integration(), "promcheck"), filepath.Join(ws.Integration(), "history")}
	if !gitrepo.Open(ws.Tree(), nil).Exists() {
		s.Sayf("test-integration and test-e2e need the tree (make apply): left out")
		return mods
	}
	return append(mods, ws.Integration(), ws.EndToEnd())
}

// moduleEnv keeps what does not need the tree out of the workspace, which names its modules.
func moduleEnv(dir string) []string {
	if slices.Contains([]string{"scripts", "promcheck", "history"}, filepath.Base(dir)) {
		return []string{"GOWORK=off"}
	}
	return nil
}

// allTags has those of files that only programs for tests have, too.
const allTags = toolchain.Tags + ",record"

func vet(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	var errs []error
	for _, m := range goModules(ws, s) {
		errs = append(errs, toolchain.GoEnv(ctx, m, moduleEnv(m), s.Log, "vet", "-tags", allTags, "./..."))
	}
	return errors.Join(errs...)
}

// vetMacOS sees that scripts/, with its tests, compiles on a contributor's Mac as well.
func vetMacOS(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return toolchain.GoEnv(ctx, filepath.Join(ws.Root, "scripts"), []string{"GOWORK=off", "GOOS=darwin", "GOARCH=arm64"}, s.Log, "vet", "./...")
}

func staticcheck(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, ws, s, toolchain.Staticcheck); err != nil {
		return err
	}
	var errs []error
	for _, m := range goModules(ws, s) {
		env := append(toolchain.Eager(), moduleEnv(m)...)
		errs = append(errs, run.Cmd{Dir: m, Env: env, Log: s.Log, Name: filepath.Join(ws.Bin(), "staticcheck"), Args: []string{"-tags", allTags, "./..."}}.Run(ctx))
	}
	return errors.Join(errs...)
}

func shellAndActions(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := toolchain.EnsurePrograms(ctx, s, "shellcheck"); err != nil {
		return err
	}
	scripts, err := ourFiles(ctx, ws, "*.sh", ".ci/run")
	if err != nil {
		return err
	}
	if err := (run.Cmd{Dir: ws.Root, Log: s.Log, Name: "shellcheck", Args: scripts}).Run(ctx); err != nil {
		return err
	}
	if err := toolchain.BuildTools(ctx, ws, s, toolchain.Actionlint); err != nil {
		return err
	}
	workflows, err := ourFiles(ctx, ws, ".github/workflows/*.yaml")
	if err != nil {
		return err
	}
	return run.Cmd{Dir: ws.Root, Log: s.Log, Name: filepath.Join(ws.Bin(), "actionlint"), Args: workflows}.Run(ctx)
}
