package verbs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/workspace"
)

// TestNightlyWorkflow checks that the workflow runs each part.
func TestNightlyWorkflow(t *testing.T) {
	content, err := os.ReadFile("../../.github/workflows/nightly.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs struct {
			Part struct {
				Strategy struct {
					Matrix struct {
						Part []string `json:"part"`
					} `json:"matrix"`
				} `json:"strategy"`
			} `json:"part"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal(content, &workflow); err != nil {
		t.Fatal(err)
	}
	want := (&App{}).nightlyNames()
	if got := workflow.Jobs.Part.Strategy.Matrix.Part; !slices.Equal(got, want) {
		t.Errorf("nightly.yaml runs %q, want %q", got, want)
	}
}

// TestNightlyInterrupted: what an interrupt leaves out has not passed.
func TestNightlyInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &App{WS: workspace.Workspace{Root: t.TempDir()}, Out: t.Output()}
	for name, err := range map[string]error{"all targets": a.e2eAll(ctx), "all parts": a.Nightly(ctx, NightlyOptions{})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the interrupt", name, err)
		}
	}
}

func TestFuzzTests(t *testing.T) {
	tree := t.TempDir()
	for name, content := range map[string]string{
		"a/a_test.go": "package a\n\nfunc FuzzA(f *testing.F) {\n}\n\nfunc TestA(t *testing.T) {}\n\nfunc FuzzB(f *testing.F) {}\n",
		"a/a.go":      "package a\n\nfunc FuzzNot(f *testing.F) {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := fuzzTests(tree, []string{"a/a.go", "a/a_test.go", "a/removed_test.go"})
	if want := []fuzzTest{{"a", "FuzzA"}, {"a", "FuzzB"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
	if got, err := fuzzTests(tree, []string{"a/a.go"}); err == nil {
		t.Errorf("no error without a fuzz test, but %v", got)
	}
}

func TestAllRan(t *testing.T) {
	const output = "cpu: x\nBenchmarkA-2 1 5 ns/op\nBenchmarkB/nodes=100/x-2 1 5 ns/op\nPASS\n"
	if err := allRan([]string{"BenchmarkA", "BenchmarkB/nodes=100"}, output); err != nil {
		t.Error(err)
	}
	for _, b := range []string{"BenchmarkB/nodes=10", "Benchmark", "BenchmarkC"} {
		if err := allRan([]string{"BenchmarkA", b}, output); err == nil {
			t.Errorf("no error, though %s did not run", b)
		}
	}
}
