package verify

import (
	"context"
	"fmt"
	"slices"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

// Options say how a project is checked.
type Options struct {
	// Dir is the work tree that is made for it.
	Dir string
	// Record is the folder that says what was checked before.
	Record string
	// TestArgs are arguments of go test.
	TestArgs []string
	// Trees are those of other projects that it compiles against.
	Trees []string
}

// Prefixes builds, vets and tests, after each patch, the packages that it touches,
// unless the same was done before.
func Prefixes(ctx context.Context, repo gitrepo.Repo, o Options, s *progress.Step) error {
	dir := o.Dir
	prefixes, err := series.Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	if err := base.AddWorktree(ctx, repo, dir, base.Ref); err != nil {
		return err
	}
	rec, err := openRecord(ctx, o.Record, slices.Concat(o.TestArgs, o.Trees)...)
	if err != nil {
		return err
	}
	work := gitrepo.Open(dir, s.Log)
	known := 0
	for i, p := range prefixes {
		if err := work.Git(ctx, "checkout", "--quiet", "--force", "--detach", p.Commit); err != nil {
			return err
		}
		tree, err := work.Tree(ctx, "HEAD")
		if err != nil {
			return err
		}
		pkgs := series.Packages(dir, p.Paths)
		if rec.has(tree, pkgs) {
			s.Sayf("%d/%d %s: verified before", i+1, len(prefixes), p.Subject)
			known++
			continue
		}
		s.Sayf("%d/%d %s (%d packages)", i+1, len(prefixes), p.Subject, len(pkgs))
		if err := check(ctx, dir, o.TestArgs, pkgs, s); err != nil {
			return fmt.Errorf("patch %d of the series, %q: %w", i+1, p.Subject, err)
		}
		if err := rec.add(tree, pkgs); err != nil {
			return err
		}
	}
	if known > 0 {
		s.Sayf("%d of %d were verified before, with the same Go and the same checks; to verify them again: rm -r %s", known, len(prefixes), o.Record)
	}
	return nil
}

// check builds, vets and tests packages of the tree at dir.
func check(ctx context.Context, dir string, args, pkgs []string, s *progress.Step) error {
	if len(pkgs) == 0 {
		return nil
	}
	if err := toolchain.BuildPackages(ctx, dir, s.Log, pkgs...); err != nil {
		return fmt.Errorf("it does not build: %w", err)
	}
	unit, suites := series.SplitSuites(pkgs)
	if len(suites) > 0 {
		// make test runs them, on the whole series.
		if err := toolchain.Go(ctx, dir, s.Log, append([]string{"vet", "-tags", toolchain.Tags}, suites...)...); err != nil {
			return fmt.Errorf("its integration tests do not build: %w", err)
		}
	}
	if len(unit) == 0 {
		return nil
	}
	if err := toolchain.UnitTest(ctx, dir, s.Log, s.Log, append([]string{"-timeout", "15m"}, args...), unit...); err != nil {
		return fmt.Errorf("the tests of its packages fail: %w", err)
	}
	return nil
}
