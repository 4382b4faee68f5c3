// Package codegen runs upstream's own generators on the patched tree, in a work
// tree of its own, and tells what they write differently from what is committed.
package codegen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/codegen/generated"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/tools"
	"capacityv2.internal/scripts/workspace"
)

// Scope says which generators run. Each of them always runs on the whole tree.
type Scope string

const (
	// Storage runs the generators whose inputs or outputs the series touches.
	Storage Scope = "storage"
	// All runs every generator that the assembled tree has the inputs of.
	All Scope = "all"
)

// ParseScope reads a scope; empty means [Storage].
func ParseScope(s string) (Scope, error) {
	switch Scope(s) {
	case "", Storage:
		return Storage, nil
	case All:
		return All, nil
	}
	return "", progress.Refuse("unknown scope "+s, fmt.Sprintf("%s or %s", Storage, All), "make codegen SCOPE="+string(All))
}

// Result is what the generators wrote.
type Result struct {
	// Head is the commit that they ran on.
	Head string
	// Changed are the paths that differ from Head, sorted; empty: no drift.
	Changed []string
	// Diff shows the beginning of each change, for people.
	Diff string

	// written are the tracked files that a generator wrote anew, changed or not.
	written map[string]bool
	// from is the folder in which they were written, tree where they belong.
	from string
	tree gitrepo.Repo
}

// Tasks regenerate the committed tree of Kubernetes at HEAD, and fill res. They refuse a
// tree with changes that are not committed, unless a generator writes those files anyway.
func Tasks(ws workspace.Workspace, scope Scope, res *Result) []progress.Task {
	c := &checkout{dir: ws.Tree() + "-codegen", tree: gitrepo.Open(ws.Tree(), nil)}
	res.from, res.tree = c.dir, c.tree
	var touched []string
	var todo []generator
	var before map[string]stamp
	prepare := func(ctx context.Context, s *progress.Step) error {
		err := c.refuseDirty(ctx)
		if err != nil {
			return err
		}
		if touched, err = c.tree.Lines(ctx, "diff", "--name-only", "--no-renames", base.Ref, "HEAD"); err != nil {
			return err
		}
		if err := c.create(ctx, s); err != nil {
			return err
		}
		tags, err := folderTags(c.dir, touched)
		if err != nil {
			return err
		}
		without, err := base.Without(ctx, c.tree)
		if err != nil {
			return err
		}
		todo = choose(scope, without, touched, tags)
		if len(todo) == 0 {
			return nil
		}
		if err := tools.EnsurePrograms(ctx, s, programs(todo)...); err != nil {
			return err
		}
		if slices.ContainsFunc(todo, func(g generator) bool { return g.etcd }) {
			if err := requireAPIPort(); err != nil {
				return err
			}
			if err := tools.Build(ctx, ws, s, tools.Etcd); err != nil {
				return err
			}
			if err := c.linkEtcd(filepath.Join(ws.Bin(), "etcd")); err != nil {
				return err
			}
		}
		s.Sayf("%d files of the series, generators: %s", len(touched), names(todo))
		return c.tools(ctx, ws.Pin("hack-tools"), s.Log)
	}
	generate := func(ctx context.Context, s *progress.Step) (err error) {
		if before, err = c.stat(ctx); err != nil {
			return err
		}
		for _, sc := range scriptsOf(todo) {
			s.Sayf("%s", sc.title())
			if err := c.run(ctx, sc, s); err != nil {
				return fmt.Errorf("%s: %w", sc.title(), err)
			}
		}
		return nil
	}
	compare := func(ctx context.Context, s *progress.Step) error {
		after, err := c.stat(ctx)
		if err != nil {
			return err
		}
		res.written = written(before, after)
		if err := proof(todo, touched, before, after, res.written); err != nil {
			return err
		}
		if res.Head, err = c.repo().Rev(ctx, "HEAD"); err != nil {
			return err
		}
		if res.Changed, res.Diff, err = c.changes(ctx, s.Log); err != nil {
			return err
		}
		s.Sayf("%d generated files written anew, %d files differ", len(res.written), len(res.Changed))
		return nil
	}
	return []progress.Task{
		{Name: "work tree for the generators of Kubernetes", Do: prepare},
		{Name: "generators of Kubernetes", Do: generate},
		{Name: "compare with what is committed", Do: compare},
	}
}

// Tree is the folder of the tree that the files belong to.
func (res *Result) Tree() string { return res.tree.Dir }

// Verify refuses generated code that differs from what the generators write.
func (res *Result) Verify() error {
	if len(res.Changed) == 0 {
		return nil
	}
	return progress.Refuse(
		fmt.Sprintf("generated code differs from what upstream's generators write (%d files):\n%s", len(res.Changed), res.Diff),
		"committed == regenerated", "make codegen, and commit what it changes (CONTRIBUTING.md says in which patch)")
}

// CopyBack puts what was changed into the tree's working copy, for the user to
// commit. Uncommitted changes of generated files that the generators do not
// confirm are undone.
func (res *Result) CopyBack(ctx context.Context) error {
	tree := res.tree
	head, err := tree.Rev(ctx, "HEAD")
	if err != nil {
		return err
	}
	if head != res.Head {
		return progress.Refuse("the tree moved to "+head+" while the generators ran", res.Head, "make codegen")
	}
	paths := slices.Clone(res.Changed)
	dirty, err := tree.Dirty(ctx)
	if err != nil {
		return err
	}
	for _, p := range dirty {
		if res.written[p] {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		from, to := filepath.Join(res.from, p), filepath.Join(tree.Dir, p)
		b, err := os.ReadFile(from)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(to)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// refuseDirty lets through what an earlier run copied into the tree.
func (c *checkout) refuseDirty(ctx context.Context) error {
	if c.tree.Applying() {
		return progress.Refuse("a patch is half applied in "+c.tree.Dir, "a tree with the whole series", "git -C "+c.tree.Dir+" am --continue, or --abort")
	}
	dirty, err := c.tree.Dirty(ctx)
	if err != nil {
		return err
	}
	dirty = slices.DeleteFunc(dirty, func(p string) bool {
		return generated.Path(p) || sameFile(filepath.Join(c.dir, p), filepath.Join(c.tree.Dir, p))
	})
	if len(dirty) == 0 {
		return nil
	}
	return progress.Refuse("the tree has changes that are not committed: "+strings.Join(dirty, ", "),
		"hand-written changes committed; the generators run on the committed tree",
		"git -C "+c.tree.Dir+" commit, then the same command again")
}

func sameFile(a, b string) bool {
	x, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	y, err := os.ReadFile(b)
	return err == nil && string(x) == string(y)
}
