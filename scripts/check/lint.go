// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/check/e2e"
	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

func lintVerb() *cobra.Command {
	return cli.Verb("lint", "Check the patches, and our own code", `
The patches have to be what tree.lock says, with the trailers that CONTRIBUTING.md lists.
Our code has to pass gofmt, go vet, staticcheck, shellcheck and actionlint, and the tooling its tests. Most of our code
compiles against the trees, which it applies first.`, "",
		func(ctx context.Context, ws workspace.Workspace) error {
			return ws.Run(ctx, "lint", slices.Concat([]run.Task{
				patch.Lint(ws), ws.Task("lists of what fails without the change", lintLists), ws.Task("gofmt", gofmt),
				ws.Task("shellcheck and actionlint", shellAndActions),
			}, patch.Trees(ws, ""), []run.Task{
				ws.Task("go vet", vet), ws.Task("staticcheck", staticcheck),
				ws.Task("what is compiled for the tree serves our tests", compiledOnce),
				ws.Task("tests of the tooling", testScripts),
			})...)
		})
}

// lintLists checks the lists of what fails without the change, and of the specs.
func lintLists(_ context.Context, ws workspace.Workspace, _ *run.Step) error {
	if _, err := failswithout.ReadList(ws.EndToEnd()); err != nil {
		return err
	}
	if _, err := e2e.ReadSelection(specSuite(ws)); err != nil {
		return err
	}
	return failswithout.LintList(ws.Integration())
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
		return run.Refuse("not formatted: "+strings.Join(list, ", "), "gofmt -s", "gofmt -s -w "+strings.Join(list, " "))
	}
	return nil
}

// goCode is Go code of ours that is checked in one go: patterns of packages or files in a folder.
type goCode struct {
	folder   string // of the code, below the root
	from     string // where the go command runs, below the root
	patterns []string
}

// allCode is all Go code of ours. The examples are parts of modules that their readers make: here they are compiled as the
// tests are.
var allCode = []goCode{
	{folder: "scripts", from: "scripts", patterns: []string{"./..."}},
	{folder: "test-integration", from: "test-integration", patterns: []string{"./..."}},
	{folder: "test-e2e", from: "test-e2e", patterns: []string{"./..."}},
	{folder: "staging-overrides/example", from: "test-e2e", patterns: []string{"../staging-overrides/example/main.go"}},
	{folder: "docs/examples/my-driver", from: "test-e2e", patterns: []string{"../docs/examples/my-driver/main.go"}},
}

// moduleEnv keeps what does not need the trees out of the workspace, which names their modules.
func moduleEnv(module string) []string {
	if module == "scripts" {
		return []string{"GOWORK=off"}
	}
	return nil
}

// eachCode checks all our code with a program, and goes on after a failure. Its arguments are followed by the patterns.
func eachCode(ctx context.Context, ws workspace.Workspace, s *run.Step, program string, args ...string) error {
	var errs []error
	for _, code := range allCode {
		cmd := run.Cmd{
			Dir: filepath.Join(ws.Root, code.from), Env: append(toolchain.Eager(), moduleEnv(code.from)...), Log: s.Log,
			Name: program, Args: slices.Concat(args, code.patterns),
		}
		errs = append(errs, cmd.Run(ctx))
	}
	return errors.Join(errs...)
}

func vet(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	return eachCode(ctx, ws, s, "go", "vet", "-tags", toolchain.Tags)
}

func staticcheck(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := toolchain.BuildTools(ctx, ws, s, toolchain.Staticcheck); err != nil {
		return err
	}
	return eachCode(ctx, ws, s, filepath.Join(ws.Bin(), "staticcheck"), "-tags", toolchain.Tags)
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
