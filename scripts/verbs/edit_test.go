package verbs

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/workspace"
)

// editedTree is a workspace whose tree has a commit that is not exported and a
// file that is not committed.
func editedTree(t *testing.T) (*App, gitrepo.Repo) {
	t.Helper()
	root := t.TempDir()
	a := &App{WS: workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}, Out: &strings.Builder{}}
	if err := os.MkdirAll(a.WS.Tree(), 0o755); err != nil {
		t.Fatal(err)
	}
	repo := a.tree(nil)
	for _, args := range [][]string{
		{"init", "--quiet"}, {"commit", "--quiet", "--allow-empty", "-m", "base"},
		{"update-ref", base.Ref, "HEAD"}, {"update-ref", base.ExportedRef, "HEAD"},
		{"commit", "--quiet", "--allow-empty", "-m", "mine"},
	} {
		if err := repo.Git(context.Background(), args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo.Dir, "new.go"), []byte("package x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return a, repo
}

// writePins writes what says which project the tree is of.
func writePins(t *testing.T, a *App) {
	t.Helper()
	for path, content := range map[string]string{
		filepath.Join(a.WS.Pin("kubernetes"), "go.mod"): "module pin\nrequire k8s.io/kubernetes v1.37.2\n",
		filepath.Join(a.WS.Series(), "project.yaml"):    "title: Kubernetes\nmodule: k8s.io/kubernetes\nstaging: true\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEditAgain opens a tree in which somebody has kept changes.
func TestEditAgain(t *testing.T) {
	t.Setenv("SHELL", "true")
	t.Setenv("GIT_AUTHOR_NAME", "Somebody")
	t.Setenv("GIT_AUTHOR_EMAIL", "somebody@example.org")
	a, repo := editedTree(t)
	writePins(t, a)
	before, err := repo.Rev(context.Background(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Edit(context.Background(), workspace.Kubernetes, strings.NewReader("k\n")); err != nil {
			t.Fatal(err)
		}
	}
	after, err := repo.Rev(context.Background(), "HEAD")
	if err != nil || after != before {
		t.Errorf("HEAD is %s, want %s, error %v", after, before, err)
	}
}

func TestSettle(t *testing.T) {
	for name, tc := range map[string]struct {
		answer      string
		moved, kept bool
		wantErr     string
	}{
		"discard":    {"d\n", false, false, ""},
		"keep":       {"k\n", true, true, ""},
		"no answer":  {"", true, true, ""},
		"save dirty": {"s\n", true, true, "dirty tree"},
	} {
		t.Run(name, func(t *testing.T) {
			a, repo := editedTree(t)
			writePins(t, a)
			if err := repo.Git(context.Background(), "config", "capacityv2.base", "v1.37.2 from modules"); err != nil {
				t.Fatal(err)
			}
			err := a.settle(context.Background(), repo, a.reporter("edit"), bufio.NewReader(strings.NewReader(tc.answer)))
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
			head, _ := repo.Rev(context.Background(), "HEAD")
			exported, _ := repo.Rev(context.Background(), base.ExportedRef)
			if (head != exported) != tc.moved {
				t.Errorf("HEAD moved: %t, want %t", head != exported, tc.moved)
			}
			if _, err := os.Stat(filepath.Join(repo.Dir, "new.go")); (err == nil) != tc.kept {
				t.Errorf("the new file is kept: %t, want %t", err == nil, tc.kept)
			}
		})
	}
}
