package prove

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// workers is how many prefixes are checked side by side: some of their tests only wait.
const workers = 4

// Prefixes builds and tests, after each patch of a project, the packages that it touches, unless
// the same was done before.
func Prefixes(ctx context.Context, ws workspace.Workspace, p workspace.Project, s *progress.Step) error {
	s.Sayf("%s", p.Title)
	inputs, err := otherInputs(ctx, ws, p, s.Log)
	if err != nil {
		return err
	}
	rec, err := openRecord(ctx, filepath.Join(ws.Work, "verified"), slices.Concat(p.TestArgs, inputs)...)
	if err != nil {
		return err
	}
	return eachPrefix(ctx, gitrepo.Open(p.Tree(), s.Log), checker{dir: p.Tree() + "-prefix", args: p.TestArgs, record: rec}, s)
}

// otherInputs are what a project compiles against, besides its own tree: the trees of the others, and the
// go.work that says so.
func otherInputs(ctx context.Context, ws workspace.Workspace, p workspace.Project, log io.Writer) ([]string, error) {
	if p.Staging {
		return nil, nil // Kubernetes compiles against itself
	}
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	var inputs []string
	for _, other := range projects {
		if other.Name == p.Name {
			continue
		}
		tree, err := gitrepo.Open(other.Tree(), log).Tree(ctx, "HEAD")
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, tree)
	}
	hash, err := workspace.HashGoWork(p.Series())
	return append(inputs, hash), err
}

// eachPrefix checks all prefixes of the tree, side by side in work trees whose names begin with that of c.
func eachPrefix(ctx context.Context, repo gitrepo.Repo, c checker, s *progress.Step) error {
	prefixes, err := series.Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	checkers := slices.Repeat([]checker{c}, min(workers, len(prefixes)))
	for w := range checkers {
		checkers[w].dir = fmt.Sprintf("%s-%d", c.dir, w+1)
		if err := base.AddWorktree(ctx, repo, checkers[w].dir, base.Ref); err != nil {
			return err
		}
	}
	next := make(chan int, len(prefixes))
	for i := range prefixes {
		next <- i
	}
	close(next)
	var known atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for _, checker := range checkers {
		group.Go(func() error {
			for i := range next {
				prefix := prefixes[i]
				// A step checks several projects.
				log, title := fmt.Sprintf("%s-%d", filepath.Base(c.dir), i+1), fmt.Sprintf("patch %d of the series, %q", i+1, prefix.Subject)
				err := s.Beside(log, title, func(log io.Writer) error {
					before, err := checker.prefix(ctx, prefix, fmt.Sprintf("%d/%d", i+1, len(prefixes)), log, s)
					if before {
						known.Add(1)
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if n := known.Load(); n > 0 {
		s.Sayf("%d of %d were verified before, with the same Go and the same checks; to verify them again: rm -r %s", n, len(prefixes), c.record.dir)
	}
	return nil
}
