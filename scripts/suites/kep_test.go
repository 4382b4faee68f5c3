package suites

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const kepSample = `
- {kep: "a | b is scheduled", section: e2e, test: "test-e2e/a: should run a pod"}
- kep: TestPack
  section: unit
  test: [kubernetes/pkg/a:TestPack/two_volumes, "kubernetes/pkg/a:TestPack/one volume"]
- {kep: rollback, section: integration, why: it is tested upstream}
`

func readKEP(t *testing.T, content string) (KEPTests, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kep-tests.yaml")
	write(t, path, content)
	return ReadKEPTests(path)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReadKEPTests(t *testing.T) {
	if entries, err := readKEP(t, kepSample); err != nil || len(entries) != 3 || len(entries[0].Test) != 1 || len(entries[1].Test) != 2 {
		t.Errorf("got %+v, error %v", entries, err)
	}
	for name, replace := range map[string][2]string{
		"an unknown section": {"section: unit", "section: units"},
		"nothing of the KEP": {"kep: TestPack", `kep: ""`},
		"no test and no why": {", why: it is tested upstream", ""},
		"an unknown field":   {"why:", "because:"},
		"no list":            {"[kubernetes", "{kubernetes"},
	} {
		changed := strings.Replace(kepSample, replace[0], replace[1], 1)
		if changed == kepSample {
			t.Fatalf("%s: the sample lacks %q", name, replace[0])
		}
		if _, err := readKEP(t, changed); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestKEPTable(t *testing.T) {
	entries, err := readKEP(t, kepSample)
	if err != nil {
		t.Fatal(err)
	}
	want := `| | the KEP | here | |
| --- | --- | --- | --- |
| e2e | a \| b is scheduled | ` + "`test-e2e/a: should run a pod`" + ` |  |
| unit | TestPack | ` + "`kubernetes/pkg/a:TestPack/two_volumes`, `kubernetes/pkg/a:TestPack/one volume`" + ` |  |
| integration | rollback |  | it is tested upstream |
`
	if got := entries.Table(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMissingKEPTests(t *testing.T) {
	tree, ours := t.TempDir(), t.TempDir()
	write(t, filepath.Join(tree, "pkg/a/a_test.go"), "package a\n\nfunc TestPack(t *testing.T) {\n\tt.Run(\"two volumes\", nil)\n}\n\nfunc FuzzPack(f *testing.F) {}\n")
	write(t, filepath.Join(tree, "pkg/a/b_test.go"), "package a\n\nfunc TestOther(t *testing.T) {}\n")
	write(t, filepath.Join(tree, "pkg/a/a.go"), "package a\n\nfunc TestHelper() {}\n")
	write(t, filepath.Join(ours, "a/a.go"), "package a\n\nvar _ = It(\"should run a pod\")\n")
	for name, c := range map[string]struct {
		test  string
		found bool
	}{
		"a test":                      {"kubernetes/pkg/a:TestPack", true},
		"a test of another file":      {"kubernetes/pkg/a:TestOther", true},
		"a fuzz test":                 {"kubernetes/pkg/a:FuzzPack", true},
		"a subtest":                   {"kubernetes/pkg/a:TestPack/two volumes", true},
		"a subtest as go test prints": {"kubernetes/pkg/a:TestPack/two_volumes/InFlight", true},
		"no subtest":                  {"kubernetes/pkg/a:TestPack/three_volumes", false},
		"no test":                     {"kubernetes/pkg/a:TestPac", false},
		"no test file":                {"kubernetes/pkg/a:TestHelper", false},
		"no folder":                   {"kubernetes/pkg/b:TestPack", false},
		"no such project":             {"kubernets/pkg/a:TestPack", false},
		"no name":                     {"kubernetes/pkg/a", false},
		"a spec":                      {"test-e2e/a: should run a pod", true},
		"no spec":                     {"test-e2e/a: should run pods", false},
		"a tree that is not there":    {"csi-spec/lib:TestA", true},
	} {
		missing := (KEPTests{{Test: Tests{c.test}}}).Missing(map[string]string{"kubernetes": tree, "test-e2e": ours, "csi-spec": ""})
		if want := map[bool][]string{true: nil, false: {c.test}}[c.found]; !slices.Equal(missing, want) {
			t.Errorf("%s: %q missing, want %q", name, missing, want)
		}
	}
}
