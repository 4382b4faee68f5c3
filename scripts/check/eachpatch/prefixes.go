// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// workers is how many prefixes are checked side by side: some of their tests only wait.
const workers = 4

// prefixes builds and tests, after each selected patch of a project, the packages that it touches, unless
// the same was done before.
func prefixes(ctx context.Context, ws workspace.Workspace, p workspace.Project, selected Selection, s *run.Step) error {
	rec, err := recordOf(ctx, ws, p, s.Log)
	if err != nil {
		return err
	}
	patches, err := series.Read(p.Series())
	if err != nil {
		return err
	}
	// The trees have a commit for each patch, or [prover.prepare] says so.
	chosen := func(i int) bool { return i < len(patches) && selected(p.Name, patches[i].Name) }
	return eachPrefix(ctx, p.Repo(s.Log), checker{dir: p.Tree() + "-prefix", args: p.TestArgs, record: rec}, chosen, s)
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
		tree, err := other.Repo(log).Tree(ctx, "HEAD")
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, tree)
	}
	hash, err := files.Hash(os.DirFS(p.Series()), workspace.GoWorkFiles...)
	return append(inputs, hash), err
}

// eachPrefix checks chosen prefixes of the tree, side by side in work trees whose names begin with that of c.
func eachPrefix(ctx context.Context, repo gitrepo.Repo, c checker, chosen func(i int) bool, s *run.Step) error {
	prefixes, err := series.Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	next := make(chan int, len(prefixes))
	for i := range prefixes {
		if chosen(i) {
			next <- i
		}
	}
	close(next)
	checked := len(next)
	checkers := slices.Repeat([]checker{c}, min(workers, checked))
	for w := range checkers {
		checkers[w].dir = fmt.Sprintf("%s-%d", c.dir, w+1)
		if err := base.AddWorktree(ctx, repo, checkers[w].dir, base.Ref); err != nil {
			return err
		}
	}
	var known atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for _, checker := range checkers {
		group.Go(func() error {
			for i := range next {
				prefix := prefixes[i]
				// A step checks several projects.
				log, title := fmt.Sprintf("%s-%d", filepath.Base(c.dir), i+1), fmt.Sprintf("patch %d of the series, %q", i+1, prefix.Subject)
				err := s.WithLog(log, title, func(log io.Writer) error {
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
		s.Sayf("%d of %d were verified before, with the same Go; to verify them again: rm -r %s", n, checked, c.record.dir)
	}
	return nil
}

// checker checks one prefix after the other in a work tree of its own.
type checker struct {
	dir    string
	args   []string
	record record
}

// prefix checks p, whose number is n, and reports whether that was done before.
func (c checker) prefix(ctx context.Context, p series.Prefix, n string, log io.Writer, s *run.Step) (before bool, err error) {
	fmt.Fprintf(log, "# %s %s\n", n, p.Subject)
	work := gitrepo.Open(c.dir, log)
	if err := work.Git(ctx, "checkout", "--quiet", "--force", "--detach", p.Commit); err != nil {
		return false, err
	}
	tree, err := work.Tree(ctx, "HEAD")
	if err != nil {
		return false, err
	}
	pkgs := series.Packages(c.dir, p.Paths)
	if c.record.has(append(pkgs, tree)...) {
		s.Sayf("%s %s: verified before", n, p.Subject)
		return true, nil
	}
	s.Sayf("%s %s (%d packages)", n, p.Subject, len(pkgs))
	if err := c.check(ctx, pkgs, log); err != nil {
		return false, err
	}
	return false, c.record.add(append(pkgs, tree)...)
}

// check builds and tests packages of the work tree. make test vets them, with the whole
// series.
func (c checker) check(ctx context.Context, pkgs []string, log io.Writer) error {
	if len(pkgs) == 0 {
		return nil
	}
	if err := toolchain.BuildPackages(ctx, c.dir, log, pkgs...); err != nil {
		return fmt.Errorf("it does not build: %w", err)
	}
	unit, suites := series.SplitSuites(pkgs)
	if len(suites) > 0 {
		// make test runs them, on the whole series.
		if err := toolchain.Go(ctx, c.dir, log, append([]string{"vet", "-tags", toolchain.Tags}, suites...)...); err != nil {
			return fmt.Errorf("its integration tests do not build: %w", err)
		}
	}
	if len(unit) == 0 {
		return nil
	}
	var results bytes.Buffer
	if _, err := toolchain.UnitTest(ctx, c.dir, toolchain.Both, log, &results, append([]string{toolchain.NoVet, "-timeout", "15m"}, c.args...), unit...); err != nil {
		// The end of the log, which the error has, often leaves out the names.
		failed := failure.FindAllString(results.String(), -1)
		return fmt.Errorf("the tests of its packages fail: %w\n%s", err, strings.Join(failed, "\n"))
	}
	return nil
}

// failure is a line of go test.
var failure = regexp.MustCompile(`--- FAIL: \S+`)
