package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
)

func TestRebaseOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1.patch")
	if err := os.WriteFile(file, []byte("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		o    rebaseOptions
		want string // "" for none
	}{
		"a base":                    {rebaseOptions{version: "v1.37.2"}, ""},
		"no base":                   {rebaseOptions{}, "no base to move to"},
		"forecast of the base":      {rebaseOptions{forecast: true}, ""},
		"forecast with a change":    {rebaseOptions{forecast: true, with: file}, ""},
		"a change, but no forecast": {rebaseOptions{version: "v1.37.2", with: file}, "no forecast"},
		"no such change":            {rebaseOptions{forecast: true, with: file + "x"}, "no patch file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.o.check(t.Context(), "v1.37.2")
			if tc.want == "" && err != nil || tc.want != "" && (!run.IsRefusal(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want a refusal that holds %q", err, tc.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	result := func(name string, o series.Outcome, files ...string) series.Result {
		return series.Result{Patch: series.Patch{Name: name}, Outcome: o, Files: files}
	}
	plain := []series.Result{result("0001-a.patch", series.Clean), result("0002-b.patch", series.Clean)}
	if got, want := verdict("1.patch", plain, plain), "1.patch breaks no patch"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	with := []series.Result{result("0001-a.patch", series.Fuzz), result("0002-b.patch", series.Conflict, "b.go", "c.go")}
	if got, want := verdict("1.patch", plain, with), "1.patch breaks 1 of 2 patches; one can cause others, because each is tried without those that conflicted:\n  0002-b.patch: b.go, c.go"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
