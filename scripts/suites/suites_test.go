package suites

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/toolchain"
)

func TestAllIsSorted(t *testing.T) {
	if !slices.IsSortedFunc(All, func(a, b Suite) int { return strings.Compare(a.Folder, b.Folder) }) {
		t.Error("All is not in the order of the folders")
	}
}

func TestSelect(t *testing.T) {
	got := Select(regexp.MustCompile("^scheduler/(queueing|bind)$"))
	if len(got) != 2 || got[0].Folder != "scheduler/bind" || got[1].Folder != "scheduler/queueing" {
		t.Errorf("got %v", got)
	}
}

func TestWriteOverlay(t *testing.T) {
	path, err := writeOverlay(t.TempDir(), "/tree/test/integration/x", "x")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(overlay.Replace["/tree/test/integration/x/"+gateTest])
	if err != nil || !strings.HasPrefix(string(file), "package x\n") || !strings.Contains(string(file), "func "+gateIsOn+"(") {
		t.Errorf("overlay %v: %v\n%s", overlay, err, file)
	}
}

// TestRows also sees that a run in which the gate was off does not count.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	runner := Runner{Results: dir}
	write := func(name string, events ...string) {
		t.Helper()
		var b strings.Builder
		for _, e := range events {
			test, action, _ := strings.Cut(e, " ")
			if test != "" {
				b.WriteString(`{"Action":"run","Package":"p","Test":"` + test + `"}` + "\n")
			}
			b.WriteString(`{"Action":"` + action + `","Package":"p","Test":"` + test + `","Elapsed":61}` + "\n")
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list := []Suite{{Folder: "a/b"}, {Folder: "c"}}
	write("a-b.off.json", "TestGood pass", "TestUpstream fail", "TestGone pass", "TestGone/sub pass", "TestNew pass", "TestNew/sub pass", " fail")
	write("a-b.on.json", "TestGood pass", "TestUpstream fail", "TestNew fail", gateIsOn+" pass", " fail")
	rows, missing, err := Rows(runner, list)
	if err != nil || len(rows) != 1 || len(missing) != 1 || missing[0].Folder != "c" {
		t.Fatalf("rows %v, missing %v, error %v", rows, missing, err)
	}
	if got, want := rows[0].Regressions(), []string{"TestNew", "TestGone"}; !slices.Equal(got, want) {
		t.Errorf("regressions %q, want %q", got, want)
	}
	if err := Check(rows); err == nil || !strings.Contains(err.Error(), "`a/b`: `TestNew`") {
		t.Errorf("Check: %v", err)
	}
	var report strings.Builder
	if err := WriteReport(&report, "a machine", rows, missing); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| `a/b` | off | 6 | 5 | 1 | 0 | 1m1s |\n| `a/b` | on | 3 | 1 | 2 | 0 | 1m1s |\n",
		"## Fails with the gate on only\n\n- `a/b`: `TestNew`\n- `a/b`: `TestGone`\n",
		"## Fails with the gate off, too\n\n- `a/b`: `TestUpstream`\n",
		"## Not run on this series\n\n- `c`\n",
	} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("no %q in the report:\n%s", line, report.String())
		}
	}

	write("c.off.json", "TestC pass", " pass")
	for name, gate := range map[string]string{"its test fails": gateIsOn + " fail", "its test does not run": "TestC pass"} {
		write("c.on.json", gate, " pass")
		if _, _, err := Rows(runner, list); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no error, though the gate was off", name)
		}
	}
	write("c.on.json", "TestC pass", gateIsOn+" pass", " pass")
	rows, missing, err = Rows(runner, list)
	if err != nil || len(rows) != 2 || len(missing) != 0 || Check(rows[1:]) != nil || len(rows[1].On.Tests) != 1 || rows[1].On.Count(toolchain.Passed) != 1 {
		t.Errorf("rows %v, missing %v, error %v", rows, missing, err)
	}
}
