package series

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
)

// pullRequest writes the change of a pull request with a commit for each of files, as
// GitHub and git format-patch do.
func pullRequest(t *testing.T, on map[string]string, files ...map[string]string) string {
	t.Helper()
	repo := newTree(t, on)
	for _, f := range files {
		commit(t, repo, "upstream: a change\n\nWith a reason.", f)
	}
	mails, err := repo.Output(t.Context(), "format-patch", "--stdout", base.Ref+"..HEAD")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "12345.patch")
	if err := os.WriteFile(path, []byte(mails+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCandidate(t *testing.T) {
	files := map[string]string{"pkg/a/a.go": numbered("one"), "pkg/b/b.go": "package b\n"}
	changed := strings.Replace(numbered("one"), "line 20", "line 2O", 1)
	for name, tc := range map[string]struct {
		files []map[string]string
		// other is a change of the base on which the file is tried.
		other map[string]string
		with  []Outcome
		want  int // how many patches are broken
	}{
		"another file":    {[]map[string]string{{"pkg/c/c.go": "package c\n"}}, nil, []Outcome{Clean, Clean}, 0},
		"other lines":     {[]map[string]string{{"pkg/a/a.go": "// new\n" + numbered("one")}}, nil, []Outcome{Fuzz, Clean}, 0},
		"the same lines":  {[]map[string]string{{"pkg/a/a.go": changed}}, nil, []Outcome{Conflict, Clean}, 1},
		"two commits":     {[]map[string]string{{"pkg/a/a.go": "// new\n" + numbered("one")}, {"pkg/a/a.go": "// new\n" + changed}}, nil, []Outcome{Conflict, Clean}, 1},
		"the same change": {[]map[string]string{{"pkg/b/b.go": "package b\n\nfunc B() {}\n"}}, nil, []Outcome{Clean, Upstream}, 0},
		"broken without it": {[]map[string]string{{"pkg/c/c.go": "package c\n"}},
			map[string]string{"pkg/a/a.go": changed}, []Outcome{Conflict, Clean}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := pullRequest(t, files, tc.files...)
			if err := CheckCandidate(t.Context(), file); err != nil {
				t.Fatal(err)
			}
			_, dir := exported(t)
			patches, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			repo := newTree(t, files)
			if tc.other != nil {
				commit(t, repo, "newer base", tc.other)
				git(t, repo, "update-ref", base.Ref, "HEAD")
			}
			before := head(t, repo)
			try := func(prepare func(context.Context, gitrepo.Repo) error) (results []Result) {
				t.Helper()
				err := step(t, func(ctx context.Context, s *run.Step) error {
					if err := prepare(ctx, repo); err != nil {
						return err
					}
					results, err = Rebase(ctx, repo, dir, patches, true, s)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return results
			}
			with := try(func(ctx context.Context, repo gitrepo.Repo) error { return AddCandidate(ctx, repo, file) })
			plain := try(DropCandidate)
			if now, err := repo.Rev(t.Context(), base.Ref); err != nil || now != before {
				t.Errorf("the base is %s (%v), want %s again", now, err, before)
			}
			for i, r := range with {
				if r.Outcome != tc.with[i] {
					t.Errorf("%s: %q, want %q", r.Patch.Name, r.Outcome, tc.with[i])
				}
			}
			if broken := Broken(plain, with); len(broken) != tc.want {
				t.Errorf("%d patches are broken, want %d", len(broken), tc.want)
			}
		})
	}
}

func TestCandidateRefused(t *testing.T) {
	files := map[string]string{"pkg/a/a.go": numbered("one")}
	dir := t.TempDir()
	write(t, dir, "notes.txt", "no patch\n")
	wantRefusal(t, CheckCandidate(t.Context(), filepath.Join(dir, "missing.patch")), "no patch file", "missing.patch")
	wantRefusal(t, CheckCandidate(t.Context(), filepath.Join(dir, "notes.txt")), "notes.txt is no patch")
	wantRefusal(t, CheckCandidate(t.Context(), dir), dir)

	repo := newTree(t, files)
	before := head(t, repo)
	file := pullRequest(t, map[string]string{"pkg/a/a.go": numbered("two")}, map[string]string{"pkg/a/a.go": "package a\n"})
	wantRefusal(t, AddCandidate(t.Context(), repo, file), "does not apply to the base", "pkg/a/a.go")
	if now := head(t, repo); now != before {
		t.Errorf("HEAD is %s, want %s", now, before)
	}
	if dirty, err := repo.Dirty(t.Context()); err != nil || len(dirty) > 0 {
		t.Errorf("changed: %q, %v", dirty, err)
	}
}
