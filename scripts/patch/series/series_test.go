// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

func TestApplyGivesTheSameCommits(t *testing.T) {
	repo, dir := exported(t)
	want := head(t, repo)
	reset(t, repo)
	if err := apply(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	if got := head(t, repo); got != want {
		t.Errorf("HEAD after apply is %s, want the exported %s", got, want)
	}
	if err := Lint(dir, rules); err != nil {
		t.Error(err)
	}
}

// TestParseOutsideOfRepositories reads trailers where a repository has other ones.
func TestParseOutsideOfRepositories(t *testing.T) {
	repo, dir := exported(t)
	git(t, repo, "config", "--local", "trailer.separators", "%")
	t.Chdir(repo.Dir)
	patches, err := Read(dir)
	if err != nil || patches[0].Class() != "feature" {
		t.Errorf("class %q, want feature; %v", patches[0].Class(), err)
	}
}

func TestRoundTrip(t *testing.T) {
	repo, dir := exported(t)
	again := filepath.Join(t.TempDir(), "again")
	roundTrip := func() error {
		return step(t, func(ctx context.Context, s *run.Step) error { return RoundTrip(ctx, repo, dir, again, s) })
	}
	if err := roundTrip(); err != nil {
		t.Error(err)
	}
	const second = "0002-b-add-a-function.patch"
	damage(t, dir, second, "1 file changed", "1  file changed") // what git am does not read
	wantRefusal(t, roundTrip(), "differs in "+second)
}

// TestExportKeepsComments checks that a comment stays with its patch when the numbers change, and that the list says
// the same to those who read it.
func TestExportKeepsComments(t *testing.T) {
	repo, dir := exported(t)
	names, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := func(names ...string) string { return listHeader + strings.Join(names, "\n") + "\n" }
	write(t, dir, ListName, list("# Group 1", names[0], "# Group 2", "# with two lines", names[1], "# Later"))
	commit(t, repo, message("b: add another function", "feature"), map[string]string{"pkg/b/c.go": "package b\n"})
	git(t, repo, "rebase", "--quiet", "--onto", base.Ref, "HEAD~2") // without the first one
	if _, err := export(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, ListName))
	if want := list("# Group 1", "# Group 2", "# with two lines", "0001-"+subjectOf(names[1]), "0002-b-add-another-function.patch", "# Later"); err != nil || string(got) != want {
		t.Errorf("%v; the list is\n%s\nwant\n%s", err, got, want)
	}
	if got, err := List(dir); err != nil || len(got) != 2 {
		t.Errorf("%q, want two patches; %v", got, err)
	}
}

func TestExportLeavesUnchangedPatchesAlone(t *testing.T) {
	repo, dir := exported(t)
	names, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1, 0)
	first := filepath.Join(dir, names[0])
	if err := os.Chtimes(first, old, old); err != nil {
		t.Fatal(err)
	}
	commit(t, repo, message("b: add another function", "feature"), map[string]string{"pkg/b/c.go": "package b\n"})
	changed, err := export(t, repo, dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"0003-b-add-another-function.patch", ListName, LockName}; !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q", changed, want)
	}
	fi, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	if !fi.ModTime().Equal(old) {
		t.Error("an unchanged patch file was written again")
	}
}

func TestExportRemovesPatchesOfDroppedCommits(t *testing.T) {
	repo, dir := exported(t)
	git(t, repo, "rebase", "--quiet", "--onto", "HEAD~2", "HEAD~1")
	changed, err := export(t, repo, dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(changed, "0001-a-change-the-middle.patch (removed)") {
		t.Errorf("changed %q, want the first patch removed", changed)
	}
	if err := Lint(dir, rules); err != nil {
		t.Error(err)
	}
}

func TestExportDropsPatchesThatAreNotListed(t *testing.T) {
	repo, dir := exported(t)
	names, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, ListName, names[0]+"\n")
	changed, err := export(t, repo, dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(changed, names[1]+" (removed)") {
		t.Errorf("changed %q, want the last patch removed", changed)
	}
	if err := Lint(dir, rules); err != nil {
		t.Error(err)
	}
}

// TestExportAfterAnUndoneOne: what git checkout brings back leaves the file of a patch that had another name.
func TestExportAfterAnUndoneOne(t *testing.T) {
	repo, dir := exported(t)
	before := t.TempDir()
	copyFiles(t, dir, before)
	git(t, repo, "commit", "--quiet", "--amend", "--message", message("b: have a function", "feature"))
	if _, err := export(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range readAll(t, before) {
		write(t, dir, name, content)
	}
	wantRefusal(t, Lint(dir, rules), "0002-b-have-a-function.patch is not listed", "make export")
	if err := apply(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	changed, err := export(t, repo, dir)
	if err != nil || !slices.Equal(changed, []string{"0002-b-have-a-function.patch (removed)"}) || snapshot(t, dir) != snapshot(t, before) {
		t.Errorf("changed %q, error %v; want what export has left behind removed", changed, err)
	}
}

func TestExportRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, tree string, git func(...string))
		want    string
	}{
		"an empty range":       {func(t *testing.T, _ string, git func(...string)) { git("reset", "--quiet", "--hard", base.Ref) }, "half-applied range"},
		"a half-applied range": {func(t *testing.T, _ string, git func(...string)) { git("reset", "--quiet", "--hard", "HEAD~1") }, "half-applied range"},
		"a half-applied range of other commits": {func(t *testing.T, _ string, git func(...string)) {
			git("reset", "--quiet", "--hard", "HEAD~1")
			git("commit", "--quiet", "--amend", "--no-edit", "--date=2027-01-01T00:00:00Z")
		}, "half-applied range"},
		"a dirty tree": {func(t *testing.T, tree string, _ func(...string)) { write(t, tree, "new.go", "package x\n") }, "dirty tree"},
		"merge commits": {func(t *testing.T, _ string, git func(...string)) {
			git("checkout", "--quiet", "-b", "side", base.Ref)
			git("commit", "--quiet", "--allow-empty", "-m", "side")
			git("checkout", "--quiet", "-")
			git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
		}, "merge commits"},
		"commits that are not on the base": {func(t *testing.T, _ string, git func(...string)) {
			git("checkout", "--quiet", "--orphan", "other")
			git("commit", "--quiet", "-m", "other")
		}, "is not on the base"},
	} {
		t.Run(name, func(t *testing.T) {
			repo, dir := exported(t)
			before := snapshot(t, dir)
			tc.prepare(t, repo.Dir, func(args ...string) { git(t, repo, args...) })
			_, err := export(t, repo, dir)
			wantRefusal(t, err, tc.want)
			if after := snapshot(t, dir); after != before {
				t.Error("the patch files changed")
			}
		})
	}
}

func TestFormatRefusesAnEmptyRange(t *testing.T) {
	repo := newTree(t, map[string]string{"a": "a\n"})
	_, err := export(t, repo, t.TempDir())
	wantRefusal(t, err, "empty range", "make apply")
}

func TestApplyRefuses(t *testing.T) {
	t.Run("a dirty tree", func(t *testing.T) {
		repo, dir := exported(t)
		write(t, repo.Dir, "pkg/a/a.go", "package a // mine\n")
		wantRefusal(t, apply(t, repo, dir), "dirty tree", "pkg/a/a.go")
		if b, _ := os.ReadFile(filepath.Join(repo.Dir, "pkg/a/a.go")); string(b) != "package a // mine\n" {
			t.Error("the change was overwritten")
		}
	})
	t.Run("commits that are not exported", func(t *testing.T) {
		repo, dir := exported(t)
		commit(t, repo, "mine", map[string]string{"pkg/b/mine.go": "package b\n"})
		mine := head(t, repo)
		wantRefusal(t, apply(t, repo, dir), "not those that were exported", "make export")
		if head(t, repo) != mine {
			t.Error("the commit was dropped")
		}
	})
	t.Run("another base", func(t *testing.T) {
		_, dir := exported(t)
		other := newTree(t, map[string]string{"pkg/a/a.go": "package a\n"})
		wantRefusal(t, apply(t, other, dir), "the base in "+other.Dir, "make export")
	})
}

// snapshot is the content of all files in dir.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	all := readAll(t, dir)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(name + "\n" + all[name])
	}
	return b.String()
}

// readAll returns the files in dir by their names.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(content)
	}
	return all
}

// damage replaces text in a patch file, which has to hold it.
func damage(t *testing.T, dir, name, from, to string) {
	t.Helper()
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), from, to, 1)
	if changed == string(b) {
		t.Fatalf("%s does not hold %q:\n%s", name, from, b)
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Whoever exports has a name and a clock of their own; the lock must not.
func TestExportLocksWhatEverybodyGets(t *testing.T) {
	repo, dir := exported(t)
	ctx := context.Background()
	if err := repo.GitAt(ctx, "2027-01-01T00:00:00Z", "-c", "user.name=x", "commit", "--quiet", "--amend", "--no-edit"); err != nil {
		t.Fatal(err)
	}
	mine := head(t, repo)
	changed, err := export(t, repo, dir)
	if err != nil || len(changed) != 0 {
		t.Fatalf("changed %q, error %v; want neither", changed, err)
	}
	exportedHead := head(t, repo)
	if exportedHead == mine {
		t.Error("HEAD still is the exporter's commit")
	}
	lock, err := ReadLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	reset(t, repo)
	if err := apply(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	if got := head(t, repo); got != lock.AppliedCommit || got != exportedHead {
		t.Errorf("applied commit %s, lock %s, HEAD after the export %s: want one", got, lock.AppliedCommit, exportedHead)
	}
}

// TestExportKeepsTheBranch looks before each call of git: after a kill, the branch has what it has there.
func TestExportKeepsTheBranch(t *testing.T) {
	repo, dir := exported(t)
	commit(t, repo, message("c: new", "feature"), map[string]string{"pkg/c/c.go": "package c\n"})
	want, err := repo.Tree(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	quiet, trees := repo, map[string]int{}
	repo.Log = writer(func(string) {
		tree, _ := quiet.Tree(context.Background(), base.Branch)
		trees[tree]++
	})
	if _, err := export(t, repo, dir); err != nil {
		t.Fatal(err)
	}
	if trees[want] == 0 || len(trees) != 1 {
		t.Errorf("the branch had the trees %v, want %s alone", trees, want)
	}
	if err := EnsureRemovable(t.Context(), quiet); err != nil {
		t.Error(err)
	}
	if beside, _ := filepath.Glob(repo.Dir + "-*"); len(beside) != 0 {
		t.Errorf("left behind: %q", beside)
	}
	repo.Log = writer(func(text string) {
		if strings.Contains(text, "worktree add") {
			t.Error("what is exported is applied again")
		}
	})
	if _, err := export(t, repo, dir); err != nil {
		t.Fatal(err)
	}
}

// TestExportBesideACommit has a commit from another terminal before a call of git.
func TestExportBesideACommit(t *testing.T) {
	for name, after := range map[string]int{"before HEAD moves": 0, "before it is remembered": 1} {
		t.Run(name, func(t *testing.T) {
			repo, dir := exported(t)
			commit(t, repo, message("c: new", "feature"), map[string]string{"pkg/c/c.go": "package c\n"})
			quiet, calls, mine := repo, -1, ""
			repo.Log = writer(func(text string) {
				if calls >= 0 || strings.Contains(text, "update-ref HEAD ") {
					calls++
				}
				if calls == after && mine == "" {
					commit(t, quiet, message("d: mine", "feature"), map[string]string{"pkg/d/d.go": "package d\n"})
					mine = head(t, quiet)
				}
			})
			_, err := export(t, repo, dir)
			if failed := err != nil; failed != (after == 0) || mine == "" || head(t, quiet) != mine {
				t.Errorf("error %v; HEAD is %s, want the commit %q", err, head(t, quiet), mine)
			}
			if quiet.Git(t.Context(), "merge-base", "--is-ancestor", mine, base.ExportedRef) == nil {
				t.Error("the commit passes for exported")
			}
		})
	}
}

// A message that does not survive the mail format is refused, and its commit kept.
func TestExportKeepsCommitsOnFailure(t *testing.T) {
	repo, dir := exported(t)
	msg := message("c: cut short", "feature")
	commit(t, repo, msg+"\n---\nMore.\n", map[string]string{"pkg/c/c.go": "package c\n"})
	before := head(t, repo)
	_, err := export(t, repo, dir)
	wantRefusal(t, err, "odd commit messages")
	if got := head(t, repo); got != before {
		t.Errorf("HEAD is %s, want %s", got, before)
	}
}

// TestInterrupt ends an apply while git am has stopped in the second patch.
func TestInterrupt(t *testing.T) {
	repo, dir := exported(t)
	names, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	reset(t, repo)
	damage(t, dir, names[1], " package b", " package x")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	repo.Log = writer(func(text string) {
		if strings.Contains(text, "patch failed") {
			cancel()
		}
	})
	err = run.NewReporter(&strings.Builder{}, "test", t.TempDir()).Run(ctx, run.Task{Name: "apply", Do: func(ctx context.Context, s *run.Step) error { return Apply(ctx, repo, dir, s) }})
	if err == nil || ctx.Err() == nil || run.IsRefusal(err) {
		t.Fatalf("error %v, context %v: want what git am says, after an interrupt", err, ctx.Err())
	}
	repo.Log = nil
	if err := EnsureSafe(context.Background(), repo); err != nil {
		t.Errorf("after the interrupt: %v", err)
	}
	baseRev, _ := repo.Rev(context.Background(), base.Ref)
	if head(t, repo) != baseRev {
		t.Error("the tree is not back at the base")
	}
}

// writer calls a function with what is written.
type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(p)); return len(p), nil }
