package prove

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

// checker checks one prefix after the other in a work tree of its own.
type checker struct {
	dir    string
	args   []string
	record record
}

// prefix checks p, whose number is n, and reports whether that was done before.
func (c checker) prefix(ctx context.Context, p series.Prefix, n string, log io.Writer, s *progress.Step) (before bool, err error) {
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
	if c.record.has(tree, pkgs) {
		s.Sayf("%s %s: verified before", n, p.Subject)
		return true, nil
	}
	s.Sayf("%s %s (%d packages)", n, p.Subject, len(pkgs))
	if err := c.check(ctx, pkgs, log); err != nil {
		return false, err
	}
	return false, c.record.add(tree, pkgs)
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
	if err := toolchain.UnitTest(ctx, c.dir, log, &results, append([]string{toolchain.NoVet, "-timeout", "15m"}, c.args...), unit...); err != nil {
		// The end of the log, which the error has, often leaves out the names.
		failed := failure.FindAllString(results.String(), -1)
		return fmt.Errorf("the tests of its packages fail: %w\n%s", err, strings.Join(failed, "\n"))
	}
	return nil
}

// failure is a line of go test.
var failure = regexp.MustCompile(`--- FAIL: \S+`)
