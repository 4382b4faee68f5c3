// SPDX-License-Identifier: Apache-2.0

package base

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// withExamples are the fake modules; the tree names two more that are not served.
func withExamples() map[string]map[string]string {
	modules := map[string]map[string]string{}
	for name, files := range fake {
		modules[name] = maps.Clone(files)
	}
	modules["k8s.io/kubernetes@v1.37.2"]["go.work"] = "go 1.26.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n" +
		"\t./staging/src/k8s.io/example\n\t./staging/src/k8s.io/sample\n)\n"
	return modules
}

// unpin takes the modules out of the pin, which then is for no version.
func unpin(t *testing.T, pin string) {
	t.Helper()
	writeFile(t, filepath.Join(pin, "go.mod"), "module pin\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.0\n")
}

func TestEnsureWithoutExamples(t *testing.T) {
	pin := proxyOf(t, withExamples())
	var heads []string
	for _, pinned := range []bool{true, false} {
		if !pinned {
			unpin(t, pin)
		}
		dir := filepath.Join(t.TempDir(), "tree")
		var out strings.Builder
		err := run.NewReporter(&out, "test", t.TempDir()).Run(t.Context(), run.Task{Name: "tree", Do: func(ctx context.Context, s *run.Step) error {
			return Ensure(ctx, dir, options(pin, ""), s)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "without k8s.io/example, k8s.io/sample") {
			t.Errorf("the output does not name the modules:\n%s", out.String())
		}
		repo := gitrepo.Open(dir, nil)
		without, err := Without(t.Context(), repo)
		if err != nil || !slices.Equal(without, []string{"k8s.io/example", "k8s.io/sample"}) {
			t.Errorf("without %q, %v", without, err)
		}
		work, err := os.ReadFile(filepath.Join(dir, "go.work"))
		if want := fake["k8s.io/kubernetes@v1.37.2"]["go.work"]; err != nil || string(work) != want {
			t.Errorf("go.work is %q (%v), want %q", work, err, want)
		}
		h, err := repo.Rev(t.Context(), "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, h)
	}
	if heads[0] != heads[1] {
		t.Errorf("the commits %q differ, pinned and not", heads)
	}
}

func TestEnsureWithoutANeededModule(t *testing.T) {
	const example = "\nrequire k8s.io/example v0.37.2\n"
	for name, tc := range map[string]struct {
		change func(modules map[string]map[string]string)
		unpin  bool
		want   string
	}{
		"the main module requires it": {func(m map[string]map[string]string) { m["k8s.io/kubernetes@v1.37.2"]["go.mod"] += example }, true,
			"cannot fetch k8s.io/example@v0.37.2, which k8s.io/kubernetes requires: "},
		"a staging module requires it": {func(m map[string]map[string]string) { m["k8s.io/api@v0.37.2"]["go.mod"] += example }, true,
			"cannot fetch k8s.io/example@v0.37.2, which k8s.io/api requires: "},
		"the pin does not have it": {func(m map[string]map[string]string) { m["k8s.io/api@v0.37.2"]["go.mod"] += example }, false,
			"which k8s.io/api requires: the pin does not have it"},
	} {
		t.Run(name, func(t *testing.T) {
			modules := withExamples()
			tc.change(modules)
			pin := proxyOf(t, modules)
			if tc.unpin {
				unpin(t, pin)
			}
			if err := ensure(t, filepath.Join(t.TempDir(), "tree"), options(pin, "")); !run.IsRefusal(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal that holds %q", err, tc.want)
			}
		})
	}
	t.Run("the pin has it", func(t *testing.T) {
		pin := proxyOf(t, withExamples())
		b, err := os.ReadFile(filepath.Join(pin, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(pin, "go.mod"), string(b)+example)
		if err := ensure(t, filepath.Join(t.TempDir(), "tree"), options(pin, "")); !run.IsRefusal(err) || !strings.Contains(err.Error(), "cannot fetch k8s.io/example@v0.37.2") {
			t.Errorf("got %v, want a refusal: today's proxy must not change the tree", err)
		}
	})
}

// TestEnsureFromCheckoutWithExamples: a checkout has what the modules lack.
func TestEnsureFromCheckoutWithExamples(t *testing.T) {
	modules := withExamples()
	pin := proxyOf(t, modules)
	dir := filepath.Join(t.TempDir(), "tree")
	src := checkout(t, map[string]string{
		"go.work":                               modules["k8s.io/kubernetes@v1.37.2"]["go.work"],
		"staging/src/k8s.io/example/example.go": "package example\n",
	})
	if err := ensure(t, dir, options(pin, src)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "staging", "src", "k8s.io", "example", "example.go")); err != nil {
		t.Errorf("the checkout's module is not there: %v", err)
	}
	if without, err := Without(t.Context(), gitrepo.Open(dir, nil)); err != nil || len(without) > 0 {
		t.Errorf("without %q, %v; want none", without, err)
	}
}

// TestEnsurePartial: a forecast does without modules that others require.
func TestEnsurePartial(t *testing.T) {
	modules := withExamples()
	modules["k8s.io/api@v0.37.2"]["go.mod"] += "\nrequire k8s.io/example v0.37.2\n"
	pin := proxyOf(t, modules)
	unpin(t, pin)
	o := options(pin, "")
	o.Partial = true
	dir := filepath.Join(t.TempDir(), "tree")
	var out strings.Builder
	err := run.NewReporter(&out, "test", t.TempDir()).Run(t.Context(), run.Task{Name: "tree", Do: func(ctx context.Context, s *run.Step) error {
		return Ensure(ctx, dir, o, s)
	}})
	if err != nil || !strings.Contains(out.String(), "without k8s.io/example, k8s.io/sample: not served") {
		t.Errorf("error %v, output\n%s", err, out.String())
	}
}

// TestEnsureForALaterGo has modules for a Go that the proxy does not serve: it is the one that the tree names.
func TestEnsureForALaterGo(t *testing.T) {
	modules := withExamples()
	modules["k8s.io/kubernetes@v1.37.2"]["go.mod"] = "module k8s.io/kubernetes\n\ngo 1.99.0\n"
	modules["k8s.io/kubernetes@v1.37.2"][toolchain.VersionFile] = "1.99.7\n"
	pin := proxyOf(t, modules)
	err := ensure(t, filepath.Join(t.TempDir(), "tree"), options(pin, ""))
	if want := "Kubernetes v1.37.2 needs go1.99.7: "; !run.IsRefusal(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want a refusal that holds %q", err, want)
	}
}
