package suites

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/progress"
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

// result reads what go test -json prints for tests and outcomes such as "TestA pass";
// without a name, it is that of the package.
func result(t *testing.T, gateOn bool, events ...string) (toolchain.TestResult, error) {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		test, action, _ := strings.Cut(e, " ")
		if test != "" {
			b.WriteString(`{"Action":"run","Package":"p","Test":"` + test + `"}` + "\n")
		}
		b.WriteString(`{"Action":"` + action + `","Package":"p","Test":"` + test + `","Elapsed":61}` + "\n")
	}
	return read([]byte(b.String()), gateOn)
}

func TestReport(t *testing.T) {
	off, err := result(t, false, "TestGood pass", "TestUpstream fail", "TestGone pass", "TestGone/sub pass", "TestNew pass", "TestNew/sub pass", " fail")
	if err != nil {
		t.Fatal(err)
	}
	on, err := result(t, true, "TestGood pass", "TestUpstream fail", "TestNew fail", gateIsOn+" pass", " fail")
	if err != nil {
		t.Fatal(err)
	}
	row := NewRow(All[0], "0123456789abcdef", off, on)
	if want := []string{"`apiserver`: `TestNew`", "`apiserver`: `TestGone`"}; !slices.Equal(row.Worse, want) {
		t.Errorf("worse %q, want %q", row.Worse, want)
	}
	for _, failed := range []string{"`apiserver`: `TestNew`", "`apiserver`: `TestUpstream`"} {
		if err := Check([]Row{row}); err == nil || !strings.Contains(err.Error(), failed) {
			t.Errorf("Check does not name %s: %v", failed, err)
		}
	}

	path := filepath.Join(t.TempDir(), "rows.json")
	rows, err := ReadRows(path)
	if err != nil || len(rows) != 0 {
		t.Fatalf("without a file: %v, error %v", rows, err)
	}
	rows[row.Folder] = row
	if err := WriteRows(path, rows); err != nil {
		t.Fatal(err)
	}
	if rows, err = ReadRows(path); err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	if err := WriteReport(&report, "a machine", "abc", rows); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| `apiserver` | off | 6 | 5 | 1 | 0 | 1m1s | `0123456789` |\n| `apiserver` | on | 3 | 1 | 2 | 0 | 1m1s | `0123456789` |\n",
		"## Fails with the gate on only\n\n- `apiserver`: `TestNew`\n- `apiserver`: `TestGone`\n",
		"## Fails with the gate off, too\n\n- `apiserver`: `TestUpstream`\n",
		"## Ran on an earlier series\n\n- `apiserver`\n",
		"## Not run yet\n\n- `" + All[1].Folder + "`\n",
	} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("no %q in the report:\n%s", line, report.String())
		}
	}
}

// TestGateIsOn sees that a run in which the gate was off does not count.
func TestGateIsOn(t *testing.T) {
	for name, gate := range map[string]string{"its test fails": gateIsOn + " fail", "its test does not run": "TestC pass"} {
		if _, err := result(t, true, gate, " pass"); err == nil {
			t.Errorf("%s: no error, though the gate was off", name)
		}
	}
	on, err := result(t, true, "TestC pass", gateIsOn+" pass", " pass")
	if err != nil || len(on.Tests) != 1 || on.Count(toolchain.Passed) != 1 {
		t.Errorf("%v, error %v", on, err)
	}
	if row := NewRow(All[0], "", on, on); Check([]Row{row}) != nil {
		t.Errorf("%v is not good", row)
	}
	none := toolchain.TestResult{Tests: map[string]toolchain.Outcome{"TestA": toolchain.Skipped}}
	if err := Check([]Row{NewRow(All[0], "", on, none)}); err == nil || !strings.Contains(err.Error(), "no test passes") {
		t.Errorf("all tests are skipped with the gate on: %v", err)
	}
}

// TestBuildFailed sees that a suite that does not compile has no result.
func TestBuildFailed(t *testing.T) {
	if result, err := read([]byte(`{"Action":"fail","Package":"p","FailedBuild":"p"}`+"\n"), false); err == nil {
		t.Errorf("no error, but %v", result)
	}
}

// TestErrorsNameTheGate sees that one knows which of the two runs failed, and where to
// read on.
func TestErrorsNameTheGate(t *testing.T) {
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "go.mod"), []byte("module x\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, gateOn := range []bool{false, true} {
		var log string
		err := progress.New(io.Discard, "suites", t.TempDir()).Run(t.Context(), progress.Task{Name: "x", Do: func(ctx context.Context, s *progress.Step) error {
			log = strings.TrimSuffix(s.LogPath, ".log") + "-x-none"
			_, err := Runner{Tree: tree}.run(ctx, Suite{Folder: "x/none"}, gateOn, s)
			return err
		}})
		gate := map[bool]string{false: "off", true: "on"}[gateOn]
		if want := "x/none, gate " + gate + ": "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "(log: "+log+"-"+gate+".log)") {
			t.Errorf("got %v, want %q and the log of that run", err, want)
		}
	}
}
