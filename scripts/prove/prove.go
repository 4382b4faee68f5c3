package prove

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

// Case is a patch that has to be proven.
type Case struct {
	Patch series.Patch
	// Package is a folder of the tree, Test the name of a test or a subtest.
	Package, Test string

	n int // of the patch in the series
}

// Cases returns those of a series that change what a component does, and what no test
// can fail without: patches of tests and of generated code, and a source of such code.
func Cases(patches []series.Patch) (cases, others []Case) {
	for i, p := range patches {
		c := Case{Patch: p, n: i}
		c.Package, c.Test = p.ProvenBy()
		if class := p.Class(); c.Test != "" && (class == "feature" || class == "fix" || class == "perf") {
			cases = append(cases, c)
		} else {
			others = append(others, c)
		}
	}
	return cases, others
}

// Why says why there is nothing to prove about one of the other cases, or refuses a test
// that the tree does not have.
func (c Case) Why(ctx context.Context, tree gitrepo.Repo) (string, error) {
	if c.Test == "" {
		return "make verify compares the generated code", nil
	}
	name, _, _ := strings.Cut(c.Test, "/")
	_, err := tree.Lines(ctx, "grep", "--files-with-matches", "--fixed-strings", "-e", "func "+name+"(", "HEAD", "--", c.Package)
	if run.ExitCode(err) == 1 {
		return "", progress.Refuse(fmt.Sprintf("%s: Proven-By names %s:%s, which is not there", c.Patch.Name, c.Package, c.Test), "a test of the tree", "make edit, and amend the commit")
	}
	return "class " + c.Patch.Class() + ": " + c.Package + ":" + c.Test + " is there", err
}

// Prover runs tests in a work tree of its own.
type Prover struct {
	repo, work gitrepo.Repo
	prefixes   []series.Prefix
}

// NewProver checks the base out at dir, as a work tree of repo, which has a commit for
// each patch of the series.
func NewProver(ctx context.Context, repo gitrepo.Repo, dir string, patches int) (*Prover, error) {
	prefixes, err := series.Prefixes(ctx, repo)
	if err != nil {
		return nil, err
	}
	if len(prefixes) != patches {
		return nil, progress.Refuse(fmt.Sprintf("%d patches, and %d commits in the tree", patches, len(prefixes)), "a commit for each patch", "make apply, or make export")
	}
	return &Prover{repo, gitrepo.Open(dir, repo.Log), prefixes}, base.AddWorktree(ctx, repo, dir, base.Ref)
}

// Prove runs the test of a case with the patch, and without all of it that is not
// a test, in both runs without later patches.
func (p *Prover) Prove(ctx context.Context, c Case, s *progress.Step) (Verdict, error) {
	p.work.Log = s.Log
	prefix := p.prefixes[c.n]
	if err := p.work.Git(ctx, "checkout", "--quiet", "--force", "--detach", prefix.Commit); err != nil {
		return "", err
	}
	with, err := p.test(ctx, c, s)
	if err != nil {
		return "", err
	}
	if v := judgeWith(c.Test, with); v != "" {
		return v, nil
	}
	if err := p.takeAway(ctx, prefix); err != nil {
		return "", err
	}
	without, err := p.test(ctx, c, s)
	if err != nil {
		return "", err
	}
	return judgeWithout(c.Test, without), nil
}

// takeAway undoes what the last patch of the prefix has changed, but for tests.
func (p *Prover) takeAway(ctx context.Context, prefix series.Prefix) error {
	parent := prefix.Commit + "^"
	var before, added []string
	for _, path := range prefix.Paths {
		if isTest(path) {
			continue
		}
		if _, err := p.work.Rev(ctx, parent+":"+path); err != nil {
			added = append(added, path)
		} else {
			before = append(before, path)
		}
	}
	if len(before)+len(added) == 0 {
		return progress.Refuse(fmt.Sprintf("%q changes tests only", prefix.Subject), "Class: test", "amend the commit in the tree (make edit), then make export")
	}
	if len(added) > 0 {
		if err := p.work.Git(ctx, append([]string{"rm", "--quiet", "--force", "--"}, added...)...); err != nil {
			return err
		}
	}
	if len(before) > 0 {
		return p.work.Git(ctx, append([]string{"checkout", "--quiet", "--force", parent, "--"}, before...)...)
	}
	return nil
}

// isTest reports whether the file at path does not get into any component.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "/test_utils.go") || strings.Contains(path, "/testdata/") || strings.HasPrefix(path, "test/")
}

func (p *Prover) test(ctx context.Context, c Case, s *progress.Step) (toolchain.TestResult, error) {
	var raw bytes.Buffer
	if err := toolchain.UnitTestJSON(ctx, p.work.Dir, s.Log, &raw, "./"+c.Package, "-timeout", "10m", "-run", toolchain.RunPattern(c.Test)); err != nil {
		return toolchain.TestResult{}, err
	}
	return toolchain.ReadTestResult(&raw)
}

// AddedBy returns the subject of the patch that adds the test of a case, or "".
func (p *Prover) AddedBy(ctx context.Context, c Case) (string, error) {
	name, _, _ := strings.Cut(c.Test, "/")
	subjects, err := p.repo.Lines(ctx, "log", "--reverse", "--format=%s", "-S", "func "+name+"(", base.Ref+"..HEAD", "--", filepath.ToSlash(c.Package))
	if err != nil || len(subjects) == 0 {
		return "", err
	}
	return subjects[0], nil
}
