// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStepNamesItsLogOnFailure(t *testing.T) {
	var out strings.Builder
	dir := t.TempDir()
	r := NewReporter(&out, "verb", dir)
	cause := errors.New("broken")
	err := r.Run(context.Background(),
		Task{Name: "First step", Do: func(_ context.Context, s *Step) error { s.Sayf("hello %d", 1); return nil }},
		Task{Name: "second", Do: func(_ context.Context, s *Step) error {
			fmt.Fprintln(s.Log, "detail")
			return cause
		}},
		Task{Name: "third", Do: func(context.Context, *Step) error { t.Error("a step after one that failed"); return nil }},
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

func TestRefusalSaysWhatHelps(t *testing.T) {
	for run, want := range map[string]string{
		"make down, then make up": "found\n  expected: that\n  run: make down, then make up",
		"PORT=26443 make up":      "found\n  expected: that\n  run: PORT=26443 make up",
		"wait for it, or end it":  "found\n  expected: that\n  try: wait for it, or end it",
		"":                        "found\n  expected: that",
	} {
		if got := Refuse("found", "that", run).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRefusalNeedsNoLog(t *testing.T) {
	r := NewReporter(&strings.Builder{}, "verb", t.TempDir())
	err := r.Run(context.Background(), Task{Name: "step", Do: func(context.Context, *Step) error {
		return Refuse("found this", "that", "make it")
	}})
	if want := "found this\n  expected: that\n  run: make it"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestLongSteps runs for minutes of a clock of its own.
func TestLongSteps(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		err := NewReporter(&out, "verb", dir).Run(t.Context(), Task{Name: "step", Do: func(context.Context, *Step) error {
			time.Sleep(150*time.Second + time.Millisecond)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(out.String(), filepath.Join(dir, "verb", "01-step.log"), "LOG")
		want := "[1/1] verb: step\n      still running after 1m0s (log: LOG)\n      still running after 2m0s (log: LOG)\n      done in 2m30s\n"
		if got != want {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
	})
}

// TestIndependent: what does not need the task that failed runs, and the verb fails.
func TestIndependent(t *testing.T) {
	var ran []string
	task := func(name string, err error, independent bool) Task {
		return Task{Name: name, Independent: independent, Do: func(context.Context, *Step) error { ran = append(ran, name); return err }}
	}
	err := NewReporter(t.Output(), "verb", t.TempDir()).Run(t.Context(), task("a", errors.New("one"), true), task("b", nil, false),
		task("c", errors.New("two"), false), task("d", nil, true))
	if err == nil || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") || strings.Join(ran, "") != "abc" {
		t.Errorf("ran %q, error %v", ran, err)
	}
}
