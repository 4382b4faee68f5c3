// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// Case is a patch that has to be proven.
type Case struct {
	Patch series.Patch
	// Package is a folder of the tree, Test the name of a test or a subtest.
	Package, Test string

	n int // of the patch in the series
}

func casesOf(patches []series.Patch) []Case {
	cases := make([]Case, len(patches))
	for i, p := range patches {
		cases[i] = Case{Patch: p, n: i}
		cases[i].Package, cases[i].Test = p.ProvenBy()
	}
	return cases
}

// provable says that the patch changes what a component does. Nothing can fail without the others: patches of tests and
// of generated code, and a source of such code.
func (c Case) provable() bool {
	return c.Test != "" && slices.Contains([]string{"feature", "fix", "perf"}, c.Patch.Class())
}

// reason says why there is nothing to prove about one of the other cases, or refuses a test that the tree does not have.
func (c Case) reason(ctx context.Context, tree gitrepo.Repo) (string, error) {
	if c.Test == "" {
		return "make verify compares the generated code", nil
	}
	name, _, _ := strings.Cut(c.Test, "/")
	_, err := tree.Lines(ctx, "grep", "--files-with-matches", "--fixed-strings", "-e", "func "+name+"(", "HEAD", "--", c.Package)
	if run.ExitCode(err) == 1 {
		return "", run.Refuse(fmt.Sprintf("%s: Proven-By names %s:%s, which is not there", c.Patch.Name, c.Package, c.Test),
			"a test of the tree", "git rebase -i in the tree to amend the commit, then make export")
	}
	return "class " + c.Patch.Class() + ": " + c.Package + ":" + c.Test + " is there", err
}

// prover runs tests in a work tree of its own.
type prover struct {
	tree gitrepo.Repo
	dir  string
	// patches is how many commits the tree has to have.
	patches  int
	prefixes []series.Prefix
	record   record
}

// proof is what the verdict about a case depends on, beside the checks: the trees with and without the patch, and the
// test.
func (p *prover) proof(ctx context.Context, c Case) ([]string, error) {
	commit := p.prefixes[c.n].Commit
	with, err := p.tree.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	without, err := p.tree.Tree(ctx, commit+"^")
	return []string{"needed", with, without, c.Package, c.Test}, err
}

// prepare checks the base out, as a work tree of the tree.
func (p *prover) prepare(ctx context.Context, s *run.Step) (err error) {
	if p.prefixes, err = series.Prefixes(ctx, p.tree); err != nil {
		return err
	}
	if len(p.prefixes) != p.patches {
		return run.Refuse(fmt.Sprintf("%d patches, and %d commits in the tree", p.patches, len(p.prefixes)),
			"a commit for each patch", "make apply, or make export")
	}
	return base.AddWorktree(ctx, gitrepo.Open(p.tree.Dir, s.Log), p.dir, base.Ref)
}

// prove runs the test of a case with the patch, and without all of it that is not a test, in both runs without later
// patches.
func (p *prover) prove(ctx context.Context, c Case, s *run.Step) (verdict, error) {
	return p.proveAt(ctx, c, p.prefixes[c.n], s)
}

// proveAt is prove for a patch after which the tree is that of the prefix.
func (p *prover) proveAt(ctx context.Context, c Case, prefix series.Prefix, s *run.Step) (verdict, error) {
	work := gitrepo.Open(p.dir, s.Log)
	if err := work.Git(ctx, "checkout", "--quiet", "--force", "--detach", prefix.Commit); err != nil {
		return "", err
	}
	with, err := p.test(ctx, c, s)
	if err != nil {
		return "", err
	}
	if v := judgeWith(c.Test, with); v != "" {
		return v, nil
	}
	if err := takeAway(ctx, work, prefix); err != nil {
		return "", err
	}
	without, err := p.test(ctx, c, s)
	if err != nil {
		return "", err
	}
	return judgeWithout(c.Test, without), nil
}

// takeAway undoes what the last patch of the prefix has changed, but for tests.
func takeAway(ctx context.Context, work gitrepo.Repo, prefix series.Prefix) error {
	paths := slices.DeleteFunc(slices.Clone(prefix.Paths), isTest)
	if len(paths) == 0 {
		return run.Refuse(fmt.Sprintf("%q changes tests only", prefix.Subject),
			"Class: test", "git rebase -i in the tree to amend the commit, then make export")
	}
	return work.Git(ctx, append([]string{"restore", "--source=" + prefix.Commit + "^", "--staged", "--worktree", "--"}, paths...)...)
}

// isTest reports whether the file at path does not get into any component.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "/test_utils.go") || strings.Contains(path, "/testdata/") || strings.HasPrefix(path, "test/")
}

func (p *prover) test(ctx context.Context, c Case, s *run.Step) (toolchain.TestResult, error) {
	return toolchain.UnitTestOne(ctx, p.dir, s.Log, "./"+c.Package, "-timeout", "10m", "-run", toolchain.RunPattern(c.Test))
}

// addedBy returns the subject of the patch that adds the test of a case, or "".
func (p *prover) addedBy(ctx context.Context, c Case) (string, error) {
	name, _, _ := strings.Cut(c.Test, "/")
	subjects, err := p.tree.Lines(ctx, "log", "--reverse", "--format=%s", "-S", "func "+name+"(", base.Ref+"..HEAD", "--", c.Package)
	if err != nil || len(subjects) == 0 {
		return "", err
	}
	return subjects[0], nil
}

// verdict is what the runs of a test with and without a patch say about it.
type verdict string

// The first two are those of a patch that is needed.
const (
	failsWithout   verdict = "fails without it"
	doesNotCompile verdict = "does not compile without it"
	passesWithout  verdict = "PASSES WITHOUT IT"
	failsWith      verdict = "FAILS WITH IT"
	missing        verdict = "IS NOT THERE AFTER IT"
)

func (v verdict) proven() bool { return v == failsWithout || v == doesNotCompile }

// judgeWith returns the verdict of the run with the patch, or "" if it is as it
// should be, so that the run without it decides.
func judgeWith(test string, with toolchain.TestResult) verdict {
	switch outcome := with.Tests[test]; {
	case outcome == toolchain.Passed:
		return ""
	case outcome == "" && with.Package != toolchain.Failed:
		return missing
	}
	return failsWith
}

// judgeWithout returns the verdict of the run without the patch.
func judgeWithout(test string, without toolchain.TestResult) verdict {
	switch without.Tests[test] {
	case toolchain.Failed, toolchain.Unfinished:
		return failsWithout
	case toolchain.Passed, toolchain.Skipped:
		return passesWithout
	}
	switch {
	case without.BuildFailed:
		return doesNotCompile
	case without.Package == toolchain.Failed:
		return failsWithout // before the test has begun
	}
	return passesWithout // nothing has failed
}
