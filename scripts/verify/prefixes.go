package verify

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
)

// Options say how a project is checked.
type Options struct {
	// Dir is the start of the names of the work trees that are made for it.
	Dir string
	// Record is the folder that says what was checked before.
	Record string
	// TestArgs are arguments of go test.
	TestArgs []string
	// Inputs stand for what it compiles against, besides its own tree.
	Inputs []string
}

// workers is how many prefixes are checked side by side: some of their tests only wait.
const workers = 4

// Prefixes builds and tests, after each patch, the packages that it touches, unless the
// same was done before.
func Prefixes(ctx context.Context, repo gitrepo.Repo, o Options, s *progress.Step) error {
	prefixes, err := series.Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	rec, err := openRecord(ctx, o.Record, slices.Concat(o.TestArgs, o.Inputs)...)
	if err != nil {
		return err
	}
	checkers := make([]checker, min(workers, len(prefixes)))
	for w := range checkers {
		checkers[w] = checker{dir: fmt.Sprintf("%s-%d", o.Dir, w+1), args: o.TestArgs, record: rec}
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
	for _, c := range checkers {
		group.Go(func() error {
			for i := range next {
				// A step checks several projects.
				log, err := s.Beside(fmt.Sprintf("%s-%d", filepath.Base(o.Dir), i+1))
				if err != nil {
					return err
				}
				before, err := c.prefix(ctx, prefixes[i], fmt.Sprintf("%d/%d", i+1, len(prefixes)), log, s)
				log.Close()
				if err != nil {
					return fmt.Errorf("patch %d of the series, %q: %w (log: %s)", i+1, prefixes[i].Subject, err, log.Name())
				}
				if before {
					known.Add(1)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if n := known.Load(); n > 0 {
		s.Sayf("%d of %d were verified before, with the same Go and the same checks; to verify them again: rm -r %s", n, len(prefixes), o.Record)
	}
	return nil
}
