// SPDX-License-Identifier: Apache-2.0

package base

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

func TestRepin(t *testing.T) {
	pin := proxy(t)
	sums, err := os.ReadFile(filepath.Join(pin, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(pin, "go.mod"), "// What this is.\nmodule pin\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/gone v0.36.0\n\tk8s.io/kubernetes v1.36.0\n)\n")
	writeFile(t, filepath.Join(pin, "go.sum"), "")
	if err := Repin(t.Context(), Options{Title: "Kubernetes", Module: "k8s.io/kubernetes", Pin: pin, Version: "v1.37.2", Staging: true}, nil); err != nil {
		t.Fatal(err)
	}
	gomod, err := os.ReadFile(filepath.Join(pin, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// What this is.", "k8s.io/kubernetes v1.37.2", "k8s.io/api v0.37.2"} {
		if !strings.Contains(string(gomod), want) {
			t.Errorf("go.mod has no %q:\n%s", want, gomod)
		}
	}
	if strings.Contains(string(gomod), "gone") {
		t.Errorf("go.mod has a module of the old version:\n%s", gomod)
	}
	after, err := os.ReadFile(filepath.Join(pin, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		if !strings.Contains(string(after), line) {
			t.Errorf("go.sum has no %q:\n%s", line, after)
		}
	}
}

func TestReplace(t *testing.T) {
	pin := proxy(t)
	work := t.TempDir()
	o := Options{Title: "Kubernetes", Module: "k8s.io/kubernetes", Pin: pin, Version: "v1.37.2", Staging: true}
	tree, other := filepath.Join(work, "kubernetes"), filepath.Join(work, "kubernetes-other")
	elsewhere := filepath.Join(t.TempDir(), "stock") // of the checkout that work is a copy of
	err := run.NewReporter(os.Stderr, "test", t.TempDir()).Run(t.Context(), run.Task{Name: "trees", Do: func(ctx context.Context, s *run.Step) error {
		for _, dir := range []string{tree, other} {
			if err := Ensure(ctx, dir, o, s); err != nil {
				return err
			}
		}
		repo := gitrepo.Open(tree, s.Log)
		return errors.Join(AddWorktree(ctx, repo, tree+"-verify", Ref), AddWorktree(ctx, repo, elsewhere, Ref))
	}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(other, ".git", "objects", "info", "alternates"), filepath.Join(tree, ".git", "objects")+"\n")
	writeFile(t, filepath.Join(other, "new.txt"), "x\n")
	if err := Replace(t.Context(), other, tree, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tree, "new.txt")); err != nil {
		t.Errorf("the other tree is not there: %v", err)
	}
	if err := gitrepo.Open(tree, nil).Git(t.Context(), "fsck", "--connectivity-only"); err != nil {
		t.Errorf("objects are missing: %v", err)
	}
	for _, gone := range []string{other, tree + "-verify"} {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Errorf("a work tree outside of the work folder: %v", err)
	}
}
