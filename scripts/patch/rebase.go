// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"

	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

func rebaseVerb() *cobra.Command {
	var project, version string
	var forecast bool
	c := cli.Verb("rebase", "Move the series to another upstream version: 3-way, with its pin and its patch files", `
It works in a tree of its own, and first tells whether upstream has taken a name or a
protobuf number of ours. At a conflict it stops: merge it there, git am --continue, and give
the same command again. At the end, that tree is the one in use.

A forecast changes nothing.`, "  capacityv2 rebase --base v1.38.0-alpha.0 --forecast", func(ctx context.Context, ws workspace.Workspace) error {
		return rebase(ctx, ws, project, version, forecast)
	})
	c.Flags().StringVar(&version, "base", "", "the `VERSION` to move to (without it, those that are served are listed)")
	c.Flags().BoolVar(&forecast, "forecast", false, "only tell the outcome of every patch: go on after a conflict, and leave all as it is")
	c.Flags().StringVar(&project, "project", workspace.Kubernetes, "upstream project, a `FOLDER` of patches/")
	return c
}

// rebase moves the series of a project to another base, in a tree of its own. When all
// patches are there, it takes that base over: the pin, the tree in use and the patch
// files are those of the new one. After a conflict that a person has merged, it goes on.
func rebase(ctx context.Context, ws workspace.Workspace, project, version string, forecast bool) error {
	p, err := ws.Project(project)
	if err != nil {
		return err
	}
	o, err := baseOptions(ws, p)
	if err != nil {
		return err
	}
	if err := base.EnsureServed(ctx, o, version, func(version string) string { return rebaseCommand(p, version) }); err != nil {
		return err
	}
	o.Version, o.Checkout = version, ""
	if forecast {
		o.Partial = true
		dir := rebaseDir(p, "forecast-"+version)
		return ws.Run(ctx, "rebase", Applied(ws, rebaseTree(ws, p, o, dir), takenNames(ws, p, dir), forecastPatches(p, version, dir))...)
	}
	before, err := base.Pinned(p.Pin())
	if err != nil {
		return err
	}
	if err := requireCommitted(ctx, ws, p); err != nil {
		return err
	}
	if repo := p.Repo(nil); repo.Exists() {
		if err := series.EnsureRemovable(ctx, repo); err != nil {
			return err
		}
	}
	dir := rebaseDir(p, version)
	return ws.Run(ctx, "rebase", Applied(ws, rebaseTree(ws, p, o, dir), takenNames(ws, p, dir),
		run.Task{Name: "patches", Do: func(ctx context.Context, s *run.Step) error {
			return series.Rebase(ctx, gitrepo.Open(dir, s.Log), p.Series(), rebaseCommand(p, version), s)
		}},
		run.Task{Name: "take the base over", Do: func(ctx context.Context, s *run.Step) error {
			return takeOver(ctx, ws, p, o, before, dir, s)
		}})...)
}

// rebaseCommand is what a person gives once more after a conflict.
func rebaseCommand(p workspace.Project, version string) string {
	if p.Name == workspace.Kubernetes {
		return "make rebase BASE=" + version
	}
	return "make rebase BASE=" + version + " PROJECT=" + p.Name
}

// takenNames says which names and numbers of ours the base in dir has.
func takenNames(ws workspace.Workspace, p workspace.Project, dir string) run.Task {
	return run.Task{Name: "names and numbers that upstream took", Do: func(ctx context.Context, s *run.Step) error {
		list, err := ws.Gates()
		if err != nil {
			return err
		}
		taken, err := series.TakenNames(ctx, gitrepo.Open(dir, s.Log), append(list.Ours(), p.Names...), p.NamesIn)
		if err != nil {
			return err
		}
		for _, t := range taken {
			s.Sayf("TAKEN: %s: the base has it without the series; read it before you go on", t)
		}
		if len(taken) == 0 {
			s.Sayf("none")
		}
		return nil
	}}
}

// forecastPatches tells what becomes of each patch.
func forecastPatches(p workspace.Project, version, dir string) run.Task {
	return run.Task{Name: "patches", Do: func(ctx context.Context, s *run.Step) error {
		outcomes, err := series.Forecast(ctx, gitrepo.Open(dir, s.Log), p.Series(), s)
		if err != nil {
			return err
		}
		var parts []string
		for _, o := range []series.Outcome{series.Clean, series.Fuzz, series.Upstream, series.Conflict} {
			parts = append(parts, fmt.Sprintf("%d %s", outcomes[o], o))
		}
		s.AtEnd("forecast for %s %s in %s: %s\n", p.Title, version, dir, strings.Join(parts, ", "))
		return nil
	}}
}

// rebaseDir is the tree in which the series is moved to a version.
func rebaseDir(p workspace.Project, version string) string { return p.Tree() + "-" + version }

// EnsureRemovable refuses what would be lost with the trees of a project.
func EnsureRemovable(ctx context.Context, p workspace.Project) error {
	if repo := p.Repo(nil); repo.Exists() {
		if err := series.EnsureRemovable(ctx, repo); err != nil {
			return err
		}
	}
	// Not work trees such as that of make verify: they share the configuration of the tree,
	// where a rebase may have stopped before it was taken over.
	configs, err := filepath.Glob(filepath.Join(rebaseDir(p, "v*"), ".git", "config"))
	if err != nil {
		return err
	}
	for _, config := range configs {
		repo := gitrepo.Open(filepath.Dir(filepath.Dir(config)), nil)
		if rebased, err := series.Rebased(ctx, repo); repo.Applying() || rebased && err == nil {
			return run.Refuse("a rebase is under way in "+repo.Dir, "none", "make rebase again, or remove the folder")
		}
	}
	return nil
}

// requireCommitted refuses where taking a base over would hide changes of a person.
func requireCommitted(ctx context.Context, ws workspace.Workspace, p workspace.Project) error {
	for _, dir := range []string{p.Series(), p.Pin()} {
		changed, err := gitrepo.Open(ws.Root, nil).Lines(ctx, "status", "--porcelain", "--", dir)
		if err != nil {
			return err
		}
		if len(changed) > 0 {
			return run.Refuse("changes in "+dir+" that are not committed",
				"none: they are about to be written for another base", "git commit, or git stash or git checkout -- scripts/pins patches; or with FORECAST=1")
		}
	}
	return nil
}

// rebaseTree makes the tree of another base, unless it is there with what a person has merged. That of a forecast is made
// anew: other modules may be served today.
func rebaseTree(ws workspace.Workspace, p workspace.Project, o base.Options, dir string) run.Task {
	return run.Task{Name: "base tree " + o.Version, Do: func(ctx context.Context, s *run.Step) error {
		if err := toolchain.RequireDisk(ws.Work, treeDisk); err != nil {
			return err
		}
		if o.Partial {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		if err := base.Ensure(ctx, dir, o, s); err != nil {
			return err
		}
		// The blobs that a 3-way merge needs are in the tree in use.
		alternates := filepath.Join(dir, ".git", "objects", "info", "alternates")
		return os.WriteFile(alternates, []byte(filepath.Join(p.Tree(), ".git", "objects")+"\n"), 0o644)
	}}
}

// takeOver makes the rebased tree the one in use, and writes what belongs to it in the place of the modules that were
// pinned before.
func takeOver(ctx context.Context, ws workspace.Workspace, p workspace.Project, o base.Options, before []module.Version, dir string, s *run.Step) error {
	if err := base.Repin(ctx, o, s.Log); err != nil {
		return err
	}
	if err := base.Replace(ctx, dir, p.Tree(), s.Log); err != nil {
		return err
	}
	e, err := prepare(ctx, ws, p, s)
	if err == nil {
		err = e.write(ctx, s)
	}
	if err != nil || slices.Contains(before, module.Version{Path: p.Module, Version: o.Version}) {
		return err
	}
	if p.Staging {
		// Releases are counted from 1 on each base.
		if err := errors.Join(os.WriteFile(ws.Revision(), []byte("1\n"), 0o644), base.UpdateGoWork(ws.Root, p.Tree())); err != nil {
			return err
		}
	}
	return updateOurModules(ctx, ws, p, before, s)
}

// updateOurModules moves the Go modules of ours to the modules of a new base, and names the files
// that have to be edited by hand.
func updateOurModules(ctx context.Context, ws workspace.Workspace, p workspace.Project, before []module.Version, s *run.Step) error {
	root := gitrepo.Open(ws.Root, s.Log)
	ours, err := root.Lines(ctx, "ls-files", "--", "*/go.mod", ":!scripts")
	if err != nil {
		return err
	}
	for _, goMod := range ours {
		if err := base.UpdateGoMod(filepath.Join(ws.Root, filepath.Dir(goMod)), p.Pin(), before); err != nil {
			return err
		}
	}
	var versions []string
	for _, m := range before {
		versions = append(versions, m.Version)
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	args := []string{"grep", "--files-with-matches", "--fixed-strings", "--word-regexp"}
	for _, version := range versions {
		args = append(args, "-e", version)
	}
	if named, err := root.Lines(ctx, args...); err == nil && len(named) > 0 {
		s.Sayf("these files still name %s: %s", strings.Join(versions, " or "), strings.Join(named, ", "))
	}
	return nil
}
