package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	for name, tc := range map[string]struct {
		terminal bool
		total    int
		want     string
	}{
		"silent":   {false, 0, "      still running after 1m0s (log: LOG)\n      still running after 2m0s (log: LOG)\n"},
		"compiles": {false, 4, "      compiled 1 of 4 packages (1m0s)\n      compiled 1 of 4 packages (2m0s)\n"},
		"silent on a terminal": {true, 0,
			"      still running after 1m0s (log: LOG)\n      still running after 2m0s (log: LOG)\n"},
		"compiles on a terminal": {true, 4, strings.Repeat("\r\033[K      [=======                       ] compiled 1 of 4 packages (T)", 150) + "\r\033[K"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				r := NewReporter(&out, "verb", dir)
				r.terminal = tc.terminal
				err := r.Run(t.Context(), Task{Name: "step", Do: func(ctx context.Context, _ *Step) error {
					MeterOf(ctx).Add(0, tc.total)
					MeterOf(ctx).Add(min(tc.total, 1), 0)
					time.Sleep(150*time.Second + time.Millisecond)
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				got := strings.ReplaceAll(out.String(), filepath.Join(dir, "verb", "01-step.log"), "LOG")
				if tc.terminal {
					got = regexp.MustCompile(`packages \(\w+\)`).ReplaceAllString(got, "packages (T)")
				}
				if want := "[1/1] verb: step\n" + tc.want + "      done in 2m30s\n"; got != want {
					t.Errorf("got\n%q\nwant\n%q", got, want)
				}
			})
		})
	}
}

// TestLinesReplaceTheBar checks that what a step prints does not go on in the line of the bar, which ends with compiling.
func TestLinesReplaceTheBar(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := NewReporter(&out, "verb", dir)
		r.terminal = true
		err := r.Run(t.Context(), Task{Name: "step", Do: func(ctx context.Context, s *Step) error {
			MeterOf(ctx).Add(1, 4)
			time.Sleep(1500 * time.Millisecond)
			fmt.Fprintln(s.Out, "ok")
			time.Sleep(time.Second)
			MeterOf(ctx).Add(-1, -4)
			time.Sleep(2 * time.Second)
			if !strings.HasSuffix(out.String(), "\r\033[K") {
				t.Errorf("nothing compiles any more, and the bar is still there: %q", out.String())
			}
			return nil
		}})
		bar := func(took string) string {
			return "\r\033[K      [=======                       ] compiled 1 of 4 packages (" + took + ")\r\033[K"
		}
		if want := "[1/1] verb: step\n" + bar("1s") + "ok\n" + bar("2s") + "      done in 4.5s\n"; err != nil || out.String() != want {
			t.Errorf("got\n%q, error %v\nwant\n%q", out.String(), err, want)
		}
	})
}
