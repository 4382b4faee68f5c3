package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// TestRebaseAgain goes on after an interrupt between the replacement of the tree and the export.
func TestRebaseAgain(t *testing.T) {
	root := t.TempDir()
	a := &App{WS: workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}, Out: &strings.Builder{}}
	put := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(dir string, calls ...[]string) {
		t.Helper()
		if err := gitrepo.Open(dir, nil).GitAll(t.Context(), calls...); err != nil {
			t.Fatal(err)
		}
	}
	const goMod = "module x\n\nrequire example.org/spec v1.0.0\n"
	pin, ours := filepath.Join(a.WS.Pin("spec"), "go.mod"), filepath.Join(root, "test", "go.mod")
	put(filepath.Join(root, "patches", "spec", workspace.ProjectFile), "title: Spec\nmodule: example.org/spec\n")
	put(filepath.Join(root, ".gitignore"), "/_work\n")
	put(pin, goMod)
	put(ours, goMod)
	p, err := a.WS.Project("spec")
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(p.Tree(), "a"), "a\n")
	git(p.Tree(), []string{"init", "--quiet", "--initial-branch=" + base.Branch}, []string{"add", "a"},
		[]string{"commit", "--quiet", "--message=base"}, []string{"update-ref", base.Ref, "HEAD"},
		[]string{"update-ref", base.ExportedRef, "HEAD"}, []string{"config", "capacityv2.base", "v1.0.0 from modules"})
	put(filepath.Join(p.Tree(), "a"), "b\n")
	git(p.Tree(), []string{"commit", "--quiet", "--all", "--message=a: change it\n\nClass: fix"})
	if _, err := series.Export(t.Context(), p.Repo(nil), p.Series(), "v1.0.0"); err != nil {
		t.Fatal(err)
	}
	git(root, []string{"init", "--quiet"}, []string{"add", "."}, []string{"commit", "--quiet", "--message=before"})

	// What the interrupt leaves.
	put(pin, strings.Replace(goMod, "v1.0.0", "v1.1.0", 1))
	git(p.Tree(), []string{"update-ref", base.ExportedRef, base.Ref}, []string{"config", "capacityv2.base", "v1.1.0 from modules"})
	if err := a.Rebase(t.Context(), rebaseOptions{project: "spec", version: "v1.1.0"}); err != nil {
		t.Fatal(err)
	}
	lock, err := series.ReadLock(p.Series())
	if err != nil || lock.Base != "v1.1.0" {
		t.Errorf("the lock is of %s, want v1.1.0; %v", lock.Base, err)
	}
	if b, err := os.ReadFile(ours); err != nil || !strings.Contains(string(b), "v1.1.0") {
		t.Errorf("a module of ours has\n%s\nerror %v", b, err)
	}
}
