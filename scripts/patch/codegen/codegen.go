// SPDX-License-Identifier: Apache-2.0

// Package codegen runs upstream's own generators on the committed tree, in a work tree of its own, and tells what they
// write differently from what is committed.
package codegen

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

// Run is one run of the generators of a project, and what came out.
type Run struct {
	ws      workspace.Workspace
	project workspace.Project
	// tree is the user's, dir the work tree in which the generators run: upstream's scripts delete outputs before they
	// write them, and want things beside the sources.
	tree gitrepo.Repo
	dir  string
	env  []string

	// head is the commit that they ran on, touched the files of the series.
	head    string
	touched []string
	// written are the tracked files that they wrote anew, changed or not.
	written map[string]bool
	// after is the git tree that they left, changed the paths in which it differs from head.
	after   string
	changed []string
	stat    string
}

// NewRun returns a run that has not begun.
func NewRun(ws workspace.Workspace, p workspace.Project) *Run {
	return &Run{ws: ws, project: p, tree: p.Repo(nil), dir: p.Tree() + "-codegen", written: map[string]bool{}}
}

// Tasks regenerate the tree at HEAD. They refuse a tree with changes that are not committed, unless a generator writes
// those files anyway.
func (r *Run) Tasks() []run.Task {
	return []run.Task{
		{Name: "work tree for the generators of " + r.project.Title, Do: func(ctx context.Context, s *run.Step) error {
			if err := r.create(ctx, s); err != nil {
				return err
			}
			return r.equip(ctx, s)
		}},
		{Name: "generators of " + r.project.Title, Do: r.generate},
		{Name: "compare " + r.project.Title + " with what is committed", Do: r.compare},
	}
}

func (r *Run) work(log io.Writer) gitrepo.Repo { return gitrepo.Open(r.dir, log) }

// create makes the work tree anew.
func (r *Run) create(ctx context.Context, s *run.Step) (err error) {
	if r.tree.Applying() {
		return run.Refuse("a patch is half applied in "+r.tree.Dir, "a tree with the whole series", "git -C "+r.tree.Dir+" am --continue, or --abort")
	}
	dirty, err := r.tree.Dirty(ctx)
	if err != nil {
		return err
	}
	if dirty = slices.DeleteFunc(dirty, r.project.Generated); len(dirty) > 0 {
		return run.Refuse("the tree has changes that are not committed: "+strings.Join(dirty, ", "),
			"all but generated files committed; the generators run on the committed tree", "git -C "+r.tree.Dir+" commit, then the same command again")
	}
	if r.head, err = r.tree.Rev(ctx, "HEAD"); err != nil {
		return err
	}
	if r.touched, err = r.tree.Lines(ctx, "diff", "--name-only", "--no-renames", base.Ref, "HEAD"); err != nil {
		return err
	}
	return base.AddWorktree(ctx, gitrepo.Open(r.tree.Dir, s.Log), r.dir, r.head)
}

// equip puts in place what the generators would download.
func (r *Run) equip(ctx context.Context, s *run.Step) error {
	var programs []string
	for _, g := range r.project.Generators {
		programs = append(programs, g.Needs...)
	}
	if err := toolchain.EnsurePrograms(ctx, s, programs...); err != nil {
		return err
	}
	if r.project.Staging {
		return r.equipKubernetes(ctx, s)
	}
	return r.equipSpec(ctx, s)
}

// generate runs one generator after the other.
func (r *Run) generate(ctx context.Context, s *run.Step) error {
	if _, err := r.writtenAnew(ctx); err != nil {
		return err
	}
	for _, g := range r.project.Generators {
		folders := []string{""}
		if len(g.Modules) > 0 {
			folders = slices.DeleteFunc(slices.Clone(g.Modules), func(module string) bool {
				return !slices.ContainsFunc(r.touched, func(p string) bool { return strings.HasPrefix(p, module+"/") })
			})
		}
		for _, folder := range folders {
			if err := r.call(ctx, g, folder, s); err != nil {
				return fmt.Errorf("%s: %w", title(g, folder), err)
			}
		}
	}
	return nil
}

func title(g workspace.Generator, folder string) string {
	return strings.TrimPrefix(folder+": ", ": ") + strings.Join(g.Command, " ")
}

// status is a line of upstream's about what is being generated.
var status = regexp.MustCompile(`^\+\+\+ \[[0-9 :]+\] ((?:Generating|Starting|Building) .*)$`)

// call calls a generator in a folder. It has to write some of its files, changed or not: only then does no difference
// mean anything.
func (r *Run) call(ctx context.Context, g workspace.Generator, folder string, s *run.Step) error {
	s.Sayf("%s", title(g, folder))
	lines := &run.Lines{Each: func(line string) {
		if m := status.FindStringSubmatch(line); m != nil {
			s.Sayf("%s", m[1])
		}
	}}
	err := run.Cmd{Dir: filepath.Join(r.dir, folder), Env: r.env, Log: io.MultiWriter(s.Log, lines), Name: g.Command[0], Args: g.Command[1:]}.Run(ctx)
	if err != nil {
		return err
	}
	written, err := r.writtenAnew(ctx)
	if err != nil {
		return err
	}
	for _, output := range g.Outputs {
		if !slices.ContainsFunc(written, func(p string) bool { return strings.HasPrefix(p, folder) && output.MatchString(p) }) {
			return fmt.Errorf("it ended well but wrote none of its files %s", output)
		}
	}
	for _, p := range written {
		r.written[p] = r.project.Generated(p)
	}
	return nil
}

// longAgo is the time of all files that no generator has written.
var longAgo = time.Unix(1e9, 0)

// writtenAnew returns the tracked files with another time, and gives them that one.
func (r *Run) writtenAnew(ctx context.Context) (written []string, err error) {
	tracked, err := r.work(nil).Output(ctx, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	for p := range strings.SplitSeq(tracked, "\x00") {
		path := filepath.Join(r.dir, p)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.ModTime().Equal(longAgo) {
			continue
		}
		if err := os.Chtimes(path, longAgo, longAgo); err != nil {
			return nil, err
		}
		written = append(written, p)
	}
	return written, nil
}

// compare compares the work tree with its commit, and refuses a generated file of the series that nothing has written.
func (r *Run) compare(ctx context.Context, s *run.Step) (err error) {
	for _, p := range r.touched {
		if _, err := os.Lstat(filepath.Join(r.dir, p)); err == nil && r.project.Generated(p) && !r.written[p] {
			return fmt.Errorf("%s is generated, but no generator that ran wrote it: is it in the series by mistake?", p)
		}
	}
	work := r.work(s.Log)
	if err := work.Git(ctx, "-c", "core.excludesFile="+r.excludes(), "add", "--all"); err != nil {
		return err
	}
	if r.after, err = work.Output(ctx, "write-tree"); err != nil {
		return err
	}
	if r.changed, err = work.Lines(ctx, "-c", "core.quotePath=false", "diff", "--name-only", "--no-renames", r.head, r.after); err != nil {
		return err
	}
	if r.stat, err = work.Output(ctx, "diff", "--stat=120", "--stat-count=20", "--no-renames", r.head, r.after); err != nil {
		return err
	}
	anew := 0
	for _, generated := range r.written {
		if generated {
			anew++
		}
	}
	s.Sayf("%d generated files written anew, %d files differ", anew, len(r.changed))
	return work.Git(ctx, "diff", "--no-renames", r.head, r.after) // for the log
}

// Verify refuses generated code that differs from what the generators write.
func (r *Run) Verify() error {
	if len(r.changed) == 0 {
		return nil
	}
	return run.Refuse(fmt.Sprintf("generated code of %s differs from what upstream's generators write (%d files):\n%s",
		r.project.Title, len(r.changed), r.stat), "committed == regenerated",
		"make codegen, and commit what it changes (CONTRIBUTING.md says in which patch)")
}

// CopyBack puts what was changed into the user's tree, to be committed, and says at the end what that is. Changes of
// generated files there that the generators do not confirm are undone.
func (r *Run) CopyBack(ctx context.Context, s *run.Step) error {
	head, err := r.tree.Rev(ctx, "HEAD")
	if err != nil {
		return err
	}
	if head != r.head {
		return run.Refuse("the tree moved to "+head+" while the generators ran", r.head, "make codegen")
	}
	dirty, err := r.tree.Dirty(ctx)
	if err != nil {
		return err
	}
	stale := slices.DeleteFunc(dirty, func(p string) bool { return !r.written[p] })
	if paths := slices.Concat(r.changed, stale); len(paths) > 0 {
		// The work tree and the user's have their objects in one place.
		err = r.tree.Git(ctx, append([]string{"restore", "--source=" + r.after, "--worktree", "--"}, paths...)...)
	}
	if err == nil && len(r.changed) > 0 {
		// Now, because the next project may be refused.
		s.Sayf("%s\n%d files changed in %s; commit them (CONTRIBUTING.md says in which patch), then make export", r.stat, len(r.changed), r.tree.Dir)
	}
	return err
}
