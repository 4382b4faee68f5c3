// SPDX-License-Identifier: Apache-2.0

// Package base makes the tree of a project that its series applies to: from
// pinned Go modules, or from the user's git checkout at the tag, verified and
// committed so that its hashes are the same everywhere.
package base

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// Refs of ours in the tree's repository.
const (
	// Ref is the base, without the series.
	Ref = "refs/capacityv2/base"
	// ExportedRef is the last commit whose patch files are known to be on disk.
	ExportedRef = "refs/capacityv2/exported"
	// Branch is where the series is applied.
	Branch = "capacityv2"
)

// date is the author and committer date of the assembled base's commit. Any
// fixed instant serves; a changed one changes every hash of the tree lock.
const date = "2026-01-01T00:00:00Z"

// Options say where the base comes from.
type Options struct {
	Title   string // what people call the project
	Module  string // path of its main module
	Pin     string // folder with the go.mod and go.sum of the base
	Version string // tag of the project
	// Staging says that the modules below staging/src are part of the tree.
	Staging bool
	// Workspace is a folder with the go.work and go.work.sum that the tree gets. It may
	// be missing: Kubernetes has its own.
	Workspace string
	// Partial says that the tree need not compile: staging modules that are not served are left out, whatever requires them.
	Partial bool
	// Checkout is the user's git checkout (KUBERNETES_SRC). Empty: Go modules.
	Checkout string
}

// Ensure makes the tree at dir unless it is there. A tree of another base, or
// one that is not ours, is refused, never overwritten.
func Ensure(ctx context.Context, dir string, o Options, s *run.Step) error {
	repo := gitrepo.Open(dir, s.Log)
	if _, err := os.Lstat(dir); err == nil {
		if err := ensureIsBase(ctx, repo, o); err != nil {
			return err
		}
		return addWorkspace(dir, o.Workspace)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "assembling-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	modules := filepath.Join(tmp, "modules")
	s.Sayf("fetching and checking %s %s", o.Title, o.Version)
	of, err := assemble(ctx, o, modules, s.Log)
	if err != nil {
		return err
	}
	if of.goVersion != "" {
		s.Sayf("%s needs %s, and GOTOOLCHAIN=%s fetched it", o.Version, of.goVersion, of.goVersion)
	}
	made, without := modules, of.without
	switch names := strings.Join(without, ", "); {
	case names == "":
	case o.Partial:
		s.Sayf("without %s: not served by the Go module proxy; the tree need not compile", names)
	case o.Checkout == "":
		s.Sayf("without %s: not among the modules, and no other one requires them", names)
	default:
		s.Sayf("not compared, because not among the modules: %s", names)
	}
	if o.Checkout == "" {
		err = commit(ctx, gitrepo.Open(modules, s.Log), o, without)
	} else {
		made = filepath.Join(tmp, "checkout")
		err = clone(ctx, o, modules, made, s)
	}
	if err != nil {
		return err
	}
	if err := addWorkspace(made, o.Workspace); err != nil {
		return err
	}
	return os.Rename(made, dir)
}

// ensureIsBase accepts an existing tree when its base is the wanted one.
func ensureIsBase(ctx context.Context, repo gitrepo.Repo, o Options) error {
	const help = "make clean (commits that are not exported are lost), then the same command again"
	if !repo.Exists() {
		return run.Refuse(repo.Dir+" is not a git repository", "the tree that `make apply` makes", help)
	}
	if got, err := OriginOf(ctx, repo); err != nil || got != o.origin() {
		return run.Refuse(fmt.Sprintf("unknown base: %s holds %s", repo.Dir, got), o.origin().String(), help)
	}
	if _, err := repo.Rev(ctx, Ref+"^{commit}"); err != nil {
		return run.Refuse(repo.Dir+" has no "+Ref, "the tree that `make apply` makes", help)
	}
	return nil
}

// Origin is what the base of a tree was made from.
type Origin struct {
	Version string
	// Checkout is whether it was the user's, and not Go modules.
	Checkout bool
}

// originKey has it in the tree's configuration.
const originKey = "capacityv2.base"

const fromModules, fromCheckout = " from modules", " from a checkout"

func (o Origin) String() string {
	switch {
	case o.Version == "":
		return "unknown"
	case o.Checkout:
		return o.Version + fromCheckout
	}
	return o.Version + fromModules
}

// OriginOf returns that of a tree.
func OriginOf(ctx context.Context, repo gitrepo.Repo) (Origin, error) {
	text, err := repo.Output(ctx, "config", "--local", "--get", originKey)
	version, isCheckout := strings.CutSuffix(text, fromCheckout)
	return Origin{strings.TrimSuffix(version, fromModules), isCheckout}, err
}

func (o Options) origin() Origin { return Origin{o.Version, o.Checkout != ""} }

// commit makes the assembled files, which lack some modules, a repository with one commit.
func commit(ctx context.Context, repo gitrepo.Repo, o Options, without []string) error {
	message := o.Title + " " + o.Version + "\n"
	for _, m := range without {
		message += "\n" + withoutTrailer + ": " + m
	}
	if err := dropUses(repo.Dir, without); err != nil {
		return err
	}
	if err := repo.Git(ctx, "init", "--quiet", "--initial-branch="+Branch); err != nil {
		return err
	}
	// Bytes as they are: upstream's .gitattributes would turn CRLF into LF.
	if err := writeInfo(repo.Dir, "attributes", "* -text\n"); err != nil {
		return err
	}
	if err := writeInfo(repo.Dir, "exclude", "/"+strings.Join(workspace.GoWorkFiles, "\n/")+"\n"); err != nil {
		return err
	}
	if err := repo.Git(ctx, "add", "--all", "--force", "."); err != nil {
		return err
	}
	if err := repo.GitAt(ctx, date, "commit", "--quiet", "--no-verify", "--message", message); err != nil {
		return err
	}
	// Upstream's version scripts describe HEAD by its tag.
	if err := repo.Git(ctx, "tag", o.Version); err != nil {
		return err
	}
	return recordBase(ctx, repo, o)
}

// recordBase records the base at HEAD.
func recordBase(ctx context.Context, repo gitrepo.Repo, o Options) error {
	return repo.GitAll(ctx, []string{"update-ref", Ref, "HEAD"}, []string{"update-ref", ExportedRef, "HEAD"},
		[]string{"config", "--local", originKey, o.origin().String()})
}

func writeInfo(dir, name, content string) error {
	info := filepath.Join(dir, ".git", "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, name), []byte(content), 0o644)
}

// Stock checks the base out, without the series, as a second work tree at dir.
func Stock(ctx context.Context, tree, dir string, s *run.Step) error {
	repo := gitrepo.Open(tree, s.Log)
	want, err := repo.Rev(ctx, Ref)
	if err != nil {
		return err
	}
	stock := gitrepo.Open(dir, s.Log)
	if stock.Exists() {
		if got, err := stock.Rev(ctx, "HEAD"); err == nil && got == want {
			return stock.Git(ctx, "checkout", "--quiet", "--force", "HEAD")
		}
	}
	return AddWorktree(ctx, repo, dir, want)
}

// AddWorktree checks rev out at dir, in place of a work tree of ours that may
// be there.
func AddWorktree(ctx context.Context, repo gitrepo.Repo, dir, rev string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := repo.GitAll(ctx, []string{"worktree", "prune"}, []string{"worktree", "add", "--quiet", "--force", "--detach", dir, rev}); err != nil {
		return err
	}
	if tracked, err := repo.Output(ctx, "ls-files", "--", workspace.GoWork); err != nil || tracked != "" {
		return err
	}
	return addWorkspace(dir, repo.Dir)
}

// addWorkspace copies the go.work and the go.work.sum of a folder to the tree, where
// git ignores them. Without them, the go command would take the go.work of our
// repository, which does not name the tree. Files that are the same stay as they are.
func addWorkspace(tree, folder string) error {
	for _, name := range workspace.GoWorkFiles {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := files.Update(filepath.Join(tree, name), b); err != nil {
			return err
		}
	}
	return nil
}
