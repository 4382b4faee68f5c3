package prove

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
)

// TestSince: after a force push, a clone lacks the commit that CI compares with.
func TestSince(t *testing.T) {
	ctx := t.Context()
	origin := gitrepo.Open(filepath.Join(t.TempDir(), "origin"), nil)
	git := func(repo gitrepo.Repo, args ...string) {
		t.Helper()
		if err := repo.Git(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(patches map[string]string) string {
		t.Helper()
		for name, content := range patches {
			path := filepath.Join(origin.Dir, "patches", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		git(origin, "add", "--all")
		git(origin, "commit", "--quiet", "--message=x")
		hash, err := origin.Rev(ctx, "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	if err := os.MkdirAll(origin.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git(origin, "init", "--quiet")
	otherBase := commit(map[string]string{"0001-a.patch": "a", "0002-b.patch": "b", "tree.lock": "baseTree: a",
		"../scripts/prove/prover.go": "package prove"})
	otherChecks := commit(map[string]string{"tree.lock": "baseTree: b"})
	first := commit(map[string]string{"../scripts/prove/prover.go": "package other"})
	replaced := commit(map[string]string{"0001-a.patch": "another a"})
	git(origin, "reset", "--quiet", "--hard", first)
	git(origin, "mv", "patches/0002-b.patch", "patches/0003-b.patch")
	commit(map[string]string{"0002-c.patch": "c"})

	const gone = "0123456789012345678901234567890123456789"
	for name, c := range map[string]struct {
		clone   []string
		since   string
		changed []string
		note    string
	}{
		"in the clone":                  {since: first, changed: []string{"0002-c.patch"}},
		"a name":                        {since: "HEAD~1", changed: []string{"0002-c.patch"}},
		"not in a shallow clone":        {clone: []string{"--depth=1"}, since: first, changed: []string{"0002-c.patch"}},
		"replaced by a force push":      {since: replaced, changed: []string{"0001-a.patch", "0002-c.patch"}},
		"replaced, and a shallow clone": {clone: []string{"--depth=1"}, since: replaced, changed: []string{"0001-a.patch", "0002-c.patch"}},
		"another base":                  {since: otherBase, changed: []string{"0001-a.patch", "0002-c.patch", "0003-b.patch"}},
		"other checks":                  {since: otherChecks, changed: []string{"0001-a.patch", "0002-c.patch", "0003-b.patch"}},
		"gone from origin":              {since: gone, note: "commit 012345678901 is not in this clone, and cannot be fetched from origin: nothing is left out"},
		"gone, and no origin":           {clone: []string{"--origin=other"}, since: gone, note: "commit 012345678901 is not in this clone, and cannot be fetched from origin: nothing is left out"},
		"not asked for":                 {},
	} {
		t.Run(name, func(t *testing.T) {
			clone := gitrepo.Open(filepath.Join(t.TempDir(), "clone"), nil)
			git(origin, slices.Concat([]string{"clone", "--quiet"}, c.clone, []string{"file://" + origin.Dir, clone.Dir})...)
			found, note, err := earlier(ctx, clone, c.since)
			if err != nil || note != c.note || (found == "") != (c.changed == nil) {
				t.Fatalf("found %q, note %q, error %v; want note %q", found, note, err, c.note)
			}
			if found == "" {
				return
			}
			// One that make export has just written, and git does not know.
			if err := os.WriteFile(filepath.Join(clone.Dir, "patches", "0004-d.patch"), []byte("d"), 0o644); err != nil {
				t.Fatal(err)
			}
			changed, err := changedPatches(ctx, clone, found, filepath.Join(clone.Dir, "patches"), filepath.Join(clone.Dir, "patches"))
			if want := append(c.changed, "0004-d.patch"); err != nil || !slices.Equal(changed, want) {
				t.Errorf("changed: %q, error %v, want %q", changed, err, want)
			}
		})
	}
	if _, _, err := earlier(ctx, origin, "HEAD~l"); !run.IsRefusal(err) || !strings.Contains(err.Error(), "HEAD~l") {
		t.Errorf("a name that git does not know: %v, want a refusal", err)
	}
}

// TestVerifiedAt: what an earlier commit has verified counts up to the first patch that differs, and not at all on another
// base or with other checks.
func TestVerifiedAt(t *testing.T) {
	two := "baseTree: b\npatches:\n- name: 0001-a.patch\n  sha256: a\n- name: 0002-b.patch\n  sha256: b\n"
	for name, c := range map[string]struct {
		file, content string
		want          int
	}{
		"nothing":          {"README.md", "text", 2},
		"a third patch":    {"patches/k/tree.lock", two + "- name: 0003-c.patch\n  sha256: c\n", 2},
		"the second patch": {"patches/k/tree.lock", strings.Replace(two, "sha256: b", "sha256: c", 1), 1},
		"the first patch":  {"patches/k/tree.lock", strings.Replace(two, "sha256: a", "sha256: c", 1), 0},
		"none is left":     {"patches/k/tree.lock", "baseTree: b\n", 0},
		"the base":         {"patches/k/tree.lock", strings.Replace(two, "baseTree: b", "baseTree: c", 1), 0},
		"the project":      {"patches/k/project.yaml", "testArgs: [-short]", 0},
		"the checks":       {"scripts/prove/prefixes.go", "package other", 0},
		"the toolchain":    {"scripts/toolchain/toolchain.go", "package other", 0},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gitrepo.Open(t.TempDir(), nil)
			write := func(file, content string) {
				t.Helper()
				path := filepath.Join(repo.Dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("patches/k/tree.lock", two)
			write("patches/k/project.yaml", "title: k")
			write("scripts/prove/prefixes.go", "package prove")
			write("scripts/toolchain/toolchain.go", "package toolchain")
			if err := repo.GitAll(t.Context(), []string{"init", "--quiet"}, []string{"add", "--all"}, []string{"commit", "--quiet", "--message=x"}); err != nil {
				t.Fatal(err)
			}
			write(c.file, c.content)
			if got, err := verifiedAt(t.Context(), repo, "HEAD", filepath.Join(repo.Dir, "patches", "k")); got != c.want || err != nil {
				t.Errorf("%d patches, error %v; want %d", got, err, c.want)
			}
		})
	}
}
