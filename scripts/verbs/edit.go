package verbs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func editCommand(a *App) *cobra.Command {
	var project string
	c := verb("edit", "Open a shell in the applied tree; on exit, save (export) or discard", `
One commit is one patch. To change a patch, commit with --fixup and rebase with
--autosquash, as the first lines say.`, "  capacityv2 edit --project csi-spec", func(ctx context.Context) error { return a.Edit(ctx, project, os.Stdin) })
	projectFlag(c, &project)
	return c
}

func projectFlag(c *cobra.Command, project *string) {
	c.Flags().StringVar(project, "project", workspace.Kubernetes, "upstream project, a folder of patches/")
}

// Edit opens a shell in the applied tree of a project; afterwards it asks whether to
// save (export) or to discard what was done there.
func (a *App) Edit(ctx context.Context, project string, in io.Reader) error {
	p, err := a.WS.Project(project)
	if err != nil {
		return err
	}
	r := a.reporter("edit")
	repo := p.Repo(nil)
	if kept := repo.Exists() && run.IsRefusal(series.EnsureSafe(ctx, repo)); !kept {
		if err := r.Run(ctx, a.apply()...); err != nil {
			return err
		}
	}
	if _, err := identity(ctx); err != nil {
		return err
	}
	r.Printf(`tree: %s
One commit is one patch. To change a patch: git commit --fixup=<commit>, then
git rebase -i --autosquash %s. Leave the shell to save or discard.
`, p.Tree(), base.Ref)
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "sh"))
	cmd.Dir = p.Tree()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, a.Out, a.Out
	if err := cmd.Run(); err != nil {
		// The shell's last command's exit code says nothing about the tree.
		r.Printf("the shell ended with: %v\n", err)
	}
	return a.settle(ctx, repo, r, bufio.NewReader(in))
}

// settle asks what to do with a changed tree.
func (a *App) settle(ctx context.Context, repo gitrepo.Repo, r *run.Reporter, in *bufio.Reader) error {
	var unsafe *run.Refusal
	if err := series.EnsureSafe(ctx, repo); err == nil {
		r.Printf("edit: nothing changed\n")
		return nil
	} else if !errors.As(err, &unsafe) {
		return err
	}
	r.Printf("%s. Save (export the commits), discard all that is not exported, or keep for later? [s/d/k] ", unsafe.Found)
	answer, err := in.ReadString('\n')
	if err != nil && answer == "" {
		answer = "k"
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "s", "save":
		return a.Export(ctx)
	case "d", "discard":
		return discard(ctx, repo)
	}
	r.Printf("edit: kept as it is; make edit goes on, make export saves it\n")
	return nil
}

// discard returns the tree to what the patch files say.
func discard(ctx context.Context, repo gitrepo.Repo) error {
	if repo.Applying() {
		for _, args := range [][]string{{"rebase", "--abort"}, {"am", "--abort"}} {
			if repo.Git(ctx, args...) == nil {
				break
			}
		}
	}
	return repo.GitAll(ctx, []string{"reset", "--quiet", "--hard", base.ExportedRef}, []string{"clean", "--quiet", "--force", "-d"})
}

// identity is who git's configuration says commits. It is refused when that is a guess of
// git's: the commits become patches.
func identity(ctx context.Context) (gitrepo.Person, error) {
	ident, err := exec.CommandContext(ctx, "git", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT").Output()
	if err != nil {
		return gitrepo.Person{}, run.Refuse("git does not know your name", "an identity for the commits that become patches",
			fmt.Sprintf("git config --global user.name %q && git config --global user.email %q", "Your Name", "you@example.org"))
	}
	name, rest, _ := strings.Cut(string(ident), " <")
	email, _, _ := strings.Cut(rest, ">")
	return gitrepo.Person{Name: name, Email: email}, nil
}
