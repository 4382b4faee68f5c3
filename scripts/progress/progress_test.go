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

func TestRefusalNeedsNoLog(t *testing.T) {
	r := New(&strings.Builder{}, "verb", t.TempDir())
	err := r.Run(context.Background(), Task{Name: "step", Do: func(context.Context, *Step) error {
		return Refuse("found this", "that", "make it")
	}})
	if want := "found this\n  expected: that\n  run: make it"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
