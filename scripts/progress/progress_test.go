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
	r := New(&out, "verb", dir, 2)
	ctx := context.Background()
	if err := r.Step(ctx, "First step", func(_ context.Context, s *Step) error { s.Sayf("hello %d", 1); return nil }); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("broken")
	err := r.Step(ctx, "second", func(_ context.Context, s *Step) error {
		fmt.Fprintln(s.Log, "detail")
		return cause
	})
	log := filepath.Join(dir, "verb", "02-second.log")
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), log) {
		t.Errorf("got %v, want the cause and %s", err, log)
	}
	if b, err := os.ReadFile(log); err != nil || string(b) != "detail\n" {
		t.Errorf("log: %q, %v", b, err)
	}
	for _, want := range []string{"[1/2] verb: First step\n", "hello 1\n", "[2/2] verb: second\n", "FAILED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestRefusalNeedsNoLog(t *testing.T) {
	r := New(&strings.Builder{}, "verb", t.TempDir(), 1)
	err := r.Step(context.Background(), "step", func(context.Context, *Step) error {
		return Refuse("found this", "that", "make it")
	})
	if want := "found this\n  expected: that\n  run: make it"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
