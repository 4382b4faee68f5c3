package verbs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gates"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

// ourNames are, beside the gates, what upstream must not have taken for
// another purpose: the fields and their protobuf number.
var ourNames = []string{"availableCapacities", "volumeRebuilding", "5925"}

// Rebase moves the series of a project to another base, in a tree of its own: the patches
// and the tree in use stay as they are. With forecast it goes on after a
// conflict, to tell the outcome of every patch.
func (a *App) Rebase(ctx context.Context, project, version string, forecast bool) error {
	p, err := a.WS.Project(project)
	if err != nil {
		return err
	}
	o, err := a.baseOptions(p)
	if err != nil {
		return err
	}
	o.Version, o.Checkout = version, ""
	if p.Staging {
		if _, err := base.StagingVersion(version); err != nil {
			return err
		}
	}
	r := a.reporter("rebase")
	dir := p.Tree() + "-" + version
	repo := gitrepo.Open(dir, nil)
	var results []series.Result
	err = r.Run(ctx, a.apply(
		progress.Task{Name: "base tree " + version, Do: func(ctx context.Context, s *progress.Step) error {
			if err := toolchain.RequireDisk(a.WS.Work, treeDisk); err != nil {
				return err
			}
			// Half-merged work of a person is not ours to remove.
			if repo.Exists() && repo.Applying() {
				return progress.Refuse("a rebase is under way in "+dir, "none", "git -C "+dir+" am --continue, or remove the folder")
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
		}},
		progress.Task{Name: "names and numbers that upstream took", Do: func(ctx context.Context, s *progress.Step) error {
			list, err := gates.Read(a.WS.Gates())
			if err != nil {
				return err
			}
			taken, err := series.Taken(ctx, gitrepo.Open(dir, s.Log), append(list.Ours(), ourNames...))
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
		}},
		progress.Task{Name: "patches", Do: func(ctx context.Context, s *progress.Step) error {
			patches, err := series.Read(p.Series())
			if err != nil {
				return err
			}
			results, err = series.Rebase(ctx, gitrepo.Open(dir, s.Log), p.Series(), patches, forecast, s)
			return err
		}},
	)...)
	if results != nil {
		r.Printf("rebase of %s to %s: %s\n", p.Title, version, tally(results))
	}
	if err != nil {
		return err
	}
	r.Printf("tree: %s\n", dir)
	r.Done()
	return nil
}

// tally counts the outcomes.
func tally(results []series.Result) string {
	n := map[series.Outcome]int{}
	for _, r := range results {
		n[r.Outcome]++
	}
	var parts []string
	for _, o := range []series.Outcome{series.Clean, series.Fuzz, series.Upstream, series.Conflict} {
		parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
	}
	return strings.Join(parts, ", ")
}
