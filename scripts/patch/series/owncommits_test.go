// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

func rebaseOwn(t *testing.T, repo gitrepo.Repo, dir string) error {
	t.Helper()
	return step(t, func(ctx context.Context, s *run.Step) error { return RebaseOwn(ctx, repo, dir, s) })
}

func TestMergeSeries(t *testing.T) {
	// A patch is its subject and the version of its content, such as a1.
	parse := func(side, text string) (all []change) {
		for _, p := range strings.Fields(text) {
			all = append(all, change{commit: side + p, subject: p[:1], content: p})
		}
		return all
	}
	for name, c := range map[string]struct{ before, own, files, want string }{
		"nothing":                        {"a1 b1", "a1 b1", "a1 b1", "Fa1 Fb1"},
		"own change":                     {"a1 b1 c1", "a1 b2 c1", "a1 b1 c1", "Fa1 Ob2 Fc1"},
		"change of a file":               {"a1 b1 c1", "a1 b1 c1", "a1 b2 c1", "Fa1 Fb2 Fc1"},
		"different ones":                 {"a1 b1 c1", "a2 b1 c1", "a1 b1 c2", "Oa2 Fb1 Fc2"},
		"the same change":                {"a1 b1", "a2 b1", "a2 b1", "Fa2 Fb1"},
		"both change one":                {"a1 b1", "a2 b1", "a3 b1", "Fa3+Ba1..Oa2 Fb1"},
		"own patch":                      {"a1 b1", "a1 n1 b1", "a1 b2", "Fa1 On1 Fb2"},
		"first own patch":                {"a1", "n1 a1", "a2", "On1 Fa2"},
		"both add some":                  {"a1", "a1 m1 n1", "a1 f1 g1", "Fa1 Ff1 Fg1 Om1 On1"},
		"patch of files":                 {"a1 b1", "a1 b2", "a1 n1 b1", "Fa1 Fn1 Ob2"},
		"both add one":                   {"a1", "a1 n1", "a1 n2", "Fa1 Fn2+..On1"},
		"own removal":                    {"a1 b1", "a1", "a2 b1", "Fa2"},
		"removal from files":             {"a1 b1", "a2 b1", "a2", "Fa2"},
		"removed, and changed here":      {"a1 b1", "a1 b2", "a1", "Fa1 Ob2"},
		"removed, and changed in a file": {"a1 b1", "a1", "a1 b2", "Fa1 Fb2"},
		"own order":                      {"a1 b1 c1", "c1 a1 b1", "a1 b2 c1", "Fc1 Fa1 Fb2"},
		"order of files":                 {"a1 b1 c1", "a1 b2 c1", "c1 a1 b1", "Fc1 Fa1 Ob2"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range mergeSeries(parse("B", c.before), parse("O", c.own), parse("F", c.files)) {
				text := m.commit
				if m.to != nil {
					from := ""
					if m.from != nil {
						from = m.from.commit
					}
					text += fmt.Sprintf("+%s..%s", from, m.to.commit)
				}
				got = append(got, text)
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// pulled has an own change of the second patch in the tree, and patch files that somebody else has exported.
func pulled(t *testing.T, own map[string]string, theirs func(t *testing.T, theirs gitrepo.Repo)) (mine gitrepo.Repo, dir string) {
	t.Helper()
	mine, dir = exported(t)
	for name, content := range own {
		write(t, mine.Dir, name, content)
	}
	git(t, mine, "commit", "--quiet", "--all", "--amend", "--no-edit")
	other, files := exported(t)
	theirs(t, other)
	if _, err := export(t, other, files); err != nil {
		t.Fatal(err)
	}
	copyFiles(t, files, dir)
	_, err := export(t, mine, dir)
	wantRefusal(t, err, "patch files changed since the tree was made", "make apply REBASE=1")
	wantRefusal(t, apply(t, mine, dir), "make apply REBASE=1")
	return mine, dir
}

func amend(content string) func(*testing.T, gitrepo.Repo) {
	return func(t *testing.T, repo gitrepo.Repo) {
		write(t, repo.Dir, "pkg/b/b.go", content)
		git(t, repo, "commit", "--quiet", "--all", "--amend", "--no-edit")
	}
}

func TestRebaseOwn(t *testing.T) {
	const mine = "package b\n\nfunc B() {}\n\n// One.\n// Two.\n// Three.\n// Mine.\n"
	for name, c := range map[string]struct {
		theirs func(*testing.T, gitrepo.Repo)
		want   string // of the second patch
		wrote  []string
	}{
		"a patch more": {func(t *testing.T, theirs gitrepo.Repo) {
			commit(t, theirs, message("c: theirs", "feature"), map[string]string{"pkg/c/c.go": "package c\n"})
		}, mine, []string{"0002-b-add-a-function.patch", LockName}},
		"another patch": {func(t *testing.T, theirs gitrepo.Repo) {
			write(t, theirs.Dir, "pkg/a/a.go", otherLine["pkg/a/a.go"])
			git(t, theirs, "commit", "--quiet", "--all", "--fixup=HEAD~1")
			git(t, theirs, "rebase", "--quiet", "--interactive", "--autosquash", base.Ref)
		}, mine, []string{"0002-b-add-a-function.patch", LockName}},
		"the same change":                    {amend(mine), mine, nil},
		"a line elsewhere in the same patch": {amend("// Theirs.\npackage b\n\nfunc B() {}\n"), "// Theirs.\n" + mine, []string{"0002-b-add-a-function.patch", LockName}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, dir := pulled(t, map[string]string{"pkg/b/b.go": mine}, c.theirs)
			if err := rebaseOwn(t, repo, dir); err != nil {
				t.Fatal(err)
			}
			wrote, err := export(t, repo, dir)
			if err != nil || !slices.Equal(wrote, c.wrote) {
				t.Errorf("wrote %q, error %v; want %q", wrote, err, c.wrote)
			}
			if got, err := repo.Output(t.Context(), "show", "HEAD:pkg/b/b.go"); err != nil || got+"\n" != c.want {
				t.Errorf("b.go is %q, error %v; want %q", got, err, c.want)
			}
			if err := apply(t, repo, dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRebaseOwnConflicts has two versions of one line.
func TestRebaseOwnConflicts(t *testing.T) {
	repo, dir := pulled(t, map[string]string{"pkg/b/b.go": "package b\n\nfunc Mine() {}\n"}, amend("package b\n\nfunc Theirs() {}\n"))
	before := head(t, repo)
	conflicts := func() {
		t.Helper()
		wantRefusal(t, rebaseOwn(t, repo, dir), "conflict in pkg/b/b.go", "git rebase --continue", "then make export")
	}
	conflicts()
	git(t, repo, "rebase", "--abort")
	if got := head(t, repo); got != before {
		t.Errorf("HEAD is %s after an abort, want %s", got, before)
	}
	wantRefusal(t, apply(t, repo, dir), "make apply REBASE=1")

	conflicts()
	_, err := export(t, repo, dir)
	wantRefusal(t, err, "half-done")
	write(t, repo.Dir, "pkg/b/b.go", "package b\n\nfunc Both() {}\n")
	git(t, repo, "add", "--all")
	git(t, repo, "rebase", "--continue")
	wrote, err := export(t, repo, dir)
	if err != nil || !slices.Equal(wrote, []string{"0002-b-add-a-function.patch", LockName}) {
		t.Errorf("wrote %q, error %v; want the patch that was merged, and the lock", wrote, err)
	}
}
