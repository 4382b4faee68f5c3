package progress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStepNamesItsLogOnFailure(t *testing.T) {
	var out strings.Builder
	dir := t.TempDir()
	r := New(&out, "verb", dir)
	cause := errors.New("broken")
	err := r.Run(context.Background(),
		Task{"First step", func(_ context.Context, s *Step) error { s.Sayf("hello %d", 1); return nil }},
		Task{"second", func(_ context.Context, s *Step) error {
			fmt.Fprintln(s.Log, "detail")
			return cause
		}},
		Task{"third", func(context.Context, *Step) error { t.Error("a step after one that failed"); return nil }},
	)
	log := filepath.Join(dir, "verb", "02-second.log")
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), log) {
		t.Errorf("got %v, want the cause and %s", err, log)
	}
	if b, err := os.ReadFile(log); err != nil || string(b) != "detail\n" {
		t.Errorf("log: %q, %v", b, err)
	}
	for _, want := range []string{"[1/3] verb: First step\n", "hello 1\n", "[2/3] verb: second\n", "FAILED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

// TestLastStep has a step that is known only after the list.
func TestLastStep(t *testing.T) {
	var out strings.Builder
	r := New(&out, "verb", t.TempDir())
	nothing := func(context.Context, *Step) error { return nil }
	if err := errors.Join(r.Run(t.Context(), Task{"a", nothing}, Task{"b", nothing}), r.Step(t.Context(), "c", nothing)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[1/2] verb: a\n", "[2/2] verb: b\n", "[3/3] verb: c\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestRefusalNeedsNoLog(t *testing.T) {
	r := New(&strings.Builder{}, "verb", t.TempDir())
	err := r.Step(context.Background(), "step", func(context.Context, *Step) error {
		return Refuse("found this", "that", "make it")
	})
	if want := "found this\n  expected: that\n  run: make it"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
