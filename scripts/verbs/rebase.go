package verbs

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// rebaseOptions say what to rebase to, and how.
type rebaseOptions struct {
	project, version string
	// forecast only tells the outcome of every patch.
	forecast bool
	// with is a patch file that a forecast adds to the base.
	with string
}

func rebaseCommand(a *App) *cobra.Command {
	var o rebaseOptions
	c := &cobra.Command{
		Use: "rebase VERSION", Short: "Move the series to another upstream version: 3-way, with its pin and its patch files", Args: cobra.MaximumNArgs(1),
		Long: `It works in a tree of its own, and first tells whether upstream has taken a name or a
protobuf number of ours. At a conflict it stops: merge it there, git am --continue, and give
the same command again. At the end, that tree is the one in use.

A forecast changes nothing. With the patch file of a pull request of upstream's, it says which
of the patches that change would break; VERSION is then the base in use unless it is given.`,
		Example: `  capacityv2 rebase v1.38.0-alpha.0 --forecast
  capacityv2 rebase --forecast --with ~/Downloads/12345.patch`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.version = args[0]
			}
			return a.Rebase(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.forecast, "forecast", false, "only tell the outcome of every patch: go on after a conflict, and leave all as it is")
	c.Flags().StringVar(&o.with, "with", "", "for a forecast: a patch file that is added to the base, to tell which patches it breaks")
	projectFlag(c, &o.project)
	return c
}

// Rebase moves the series of a project to another base, in a tree of its own. When all
// patches are there, it takes that base over: the pin, the tree in use and the patch
// files are those of the new one. After a conflict that a person has merged, it goes on.
func (a *App) Rebase(ctx context.Context, ro rebaseOptions) error {
	p, err := a.WS.Project(ro.project)
	if err != nil {
		return err
	}
	o, err := a.baseOptions(p)
	if err != nil {
		return err
	}
	if err := ro.check(ctx, o.Version); err != nil {
		return err
	}
	pinned := o.Version
	o.Version, o.Checkout = cmp.Or(ro.version, o.Version), ""
	if p.Staging {
		if _, err := base.StagingVersion(o.Version); err != nil {
			return err
		}
	}
	if ro.forecast {
		return a.forecast(ctx, p, o, ro.with)
	}
	before, err := a.committedPin(ctx, p)
	if err != nil {
		return err
	}
	dir := rebaseDir(p, o.Version)
	adopt := run.Task{Name: "take the base over", Do: func(ctx context.Context, s *run.Step) error {
		return a.adopt(ctx, p, o, before, dir, s)
	}}
	repinned := pinned == o.Version && !slices.Contains(before, module.Version{Path: p.Module, Version: o.Version})
	if repinned && !gitrepo.Open(dir, nil).Exists() {
		return a.do(ctx, "rebase", adopt) // an interrupt came after that tree had taken the place of the other
	}
	if err := a.requireCommitted(ctx, p); err != nil {
		return err
	}
	if repo := p.Repo(nil); repo.Exists() {
		if err := series.EnsureRemovable(ctx, repo); err != nil {
			return err
		}
	}
	return a.do(ctx, "rebase", a.apply(
		a.rebaseTree(p, o, dir, false),
		a.takenNames(p, dir),
		rebasePatches("patches", p, dir, false, new([]series.Result)),
		adopt,
	)...)
}

// check refuses what does not go together, before anything is done.
func (ro rebaseOptions) check(ctx context.Context, pinned string) error {
	switch {
	case ro.version == "" && !ro.forecast:
		return run.Refuse("no base to move to", "a tag of the project, such as "+pinned, "make rebase BASE="+pinned)
	case ro.with == "":
		return nil
	case !ro.forecast:
		return run.Refuse("a patch file for a rebase that is no forecast", "a forecast: the change is not a part of the base yet", "make rebase FORECAST=1 WITH="+ro.with)
	}
	return series.CheckCandidate(ctx, ro.with)
}

// takenNames tells which names and numbers of ours the base in dir has.
func (a *App) takenNames(p workspace.Project, dir string) run.Task {
	return run.Task{Name: "names and numbers that upstream took", Do: func(ctx context.Context, s *run.Step) error {
		list, err := a.WS.Gates()
		if err != nil {
			return err
		}
		taken, err := series.Taken(ctx, gitrepo.Open(dir, s.Log), append(list.Ours(), p.Names...), p.NamesIn)
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

// rebasePatches puts the patches that are not there yet on the tree in dir, and counts the outcomes.
func rebasePatches(name string, p workspace.Project, dir string, forecast bool, results *[]series.Result) run.Task {
	return run.Task{Name: name, Do: func(ctx context.Context, s *run.Step) error {
		patches, err := series.Read(p.Series())
		if err != nil {
			return err
		}
		*results, err = series.Rebase(ctx, gitrepo.Open(dir, s.Log), p.Series(), patches, forecast, s)
		s.Sayf("%s", tally(*results))
		return err
	}}
}

func projectFlag(c *cobra.Command, project *string) {
	c.Flags().StringVar(project, "project", workspace.Kubernetes, "upstream project, a folder of patches/")
}

// rebaseDir is the tree in which the series is moved to a version.
func rebaseDir(p workspace.Project, version string) string { return p.Tree() + "-" + version }

// requireCommitted refuses where taking a base over would hide changes of a person.
func (a *App) requireCommitted(ctx context.Context, p workspace.Project) error {
	for _, dir := range []string{p.Series(), p.Pin()} {
		changed, err := gitrepo.Open(a.WS.Root, nil).Lines(ctx, "status", "--porcelain", "--", dir)
		if err != nil {
			return err
		}
		if len(changed) > 0 {
			return run.Refuse("changes in "+dir+" that are not committed", "none: they are about to be written for another base", "git commit, or git stash; or with FORECAST=1")
		}
	}
	return nil
}

// rebaseTree makes the tree of another base, unless a rebase has come through a patch in it.
func (a *App) rebaseTree(p workspace.Project, o base.Options, dir string, forecast bool) run.Task {
	return run.Task{Name: "base tree " + o.Version, Do: func(ctx context.Context, s *run.Step) error {
		if err := toolchain.RequireDisk(a.WS.Work, treeDisk); err != nil {
			return err
		}
		if repo := gitrepo.Open(dir, s.Log); !forecast && repo.Exists() {
			// Half-merged work of a person is not ours to remove.
			if repo.Applying() {
				return run.Refuse("a rebase is under way in "+dir, "none", "git -C "+dir+" am --continue, or remove the folder")
			}
			if series.Stopped(ctx, repo) {
				s.Sayf("going on in %s", dir)
				return base.Ensure(ctx, dir, o, s)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := base.Ensure(ctx, dir, o, s); err != nil {
			return err
		}
		// The blobs that a 3-way merge needs are in the tree in use.
		alternates := filepath.Join(dir, ".git", "objects", "info", "alternates")
		return os.WriteFile(alternates, []byte(filepath.Join(p.Tree(), ".git", "objects")+"\n"), 0o644)
	}}
}

// committedPin returns the modules that the pin of a project requires in the last commit here.
func (a *App) committedPin(ctx context.Context, p workspace.Project) ([]module.Version, error) {
	rel, err := filepath.Rel(a.WS.Root, p.Pin())
	if err != nil {
		return nil, err
	}
	goMod, err := gitrepo.Open(a.WS.Root, nil).Output(ctx, "show", "HEAD:./"+filepath.ToSlash(rel)+"/go.mod")
	if err != nil {
		return nil, err
	}
	return base.Required([]byte(goMod))
}

// adopt makes the rebased tree the one in use, unless it is already, and writes what belongs to it in the place of the
// modules that were pinned before.
func (a *App) adopt(ctx context.Context, p workspace.Project, o base.Options, before []module.Version, dir string, s *run.Step) error {
	if gitrepo.Open(dir, nil).Exists() {
		if err := base.Repin(ctx, o, s.Log); err != nil {
			return err
		}
		if err := base.Replace(ctx, dir, p.Tree(), s.Log); err != nil {
			return err
		}
	}
	if err := a.export(ctx, p, s); err != nil || slices.Contains(before, module.Version{Path: p.Module, Version: o.Version}) {
		return err
	}
	if p.Staging {
		if err := errors.Join(release.ResetRevision(a.WS), base.FollowUses(a.WS.Root, p.Tree())); err != nil {
			return err
		}
	}
	return a.follow(ctx, p, before, s)
}

// follow moves the Go modules of ours to the modules of a new base, and names the files
// that have to be edited by hand.
func (a *App) follow(ctx context.Context, p workspace.Project, before []module.Version, s *run.Step) error {
	root := gitrepo.Open(a.WS.Root, s.Log)
	ours, err := root.Lines(ctx, "ls-files", "--", "*/go.mod", ":!scripts")
	if err != nil {
		return err
	}
	for _, goMod := range ours {
		if err := base.Follow(filepath.Join(a.WS.Root, filepath.Dir(goMod)), p.Pin(), before); err != nil {
			return err
		}
	}
	args := []string{"grep", "--files-with-matches", "--fixed-strings", "--word-regexp"}
	for _, version := range versions(before) {
		args = append(args, "-e", version)
	}
	if named, err := root.Lines(ctx, args...); err == nil && len(named) > 0 {
		s.Sayf("these files still name %s: %s", strings.Join(versions(before), " or "), strings.Join(named, ", "))
	}
	return nil
}

// versions are those of the modules, each once.
func versions(modules []module.Version) []string {
	var all []string
	for _, m := range modules {
		all = append(all, m.Version)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
