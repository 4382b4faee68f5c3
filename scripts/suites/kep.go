package suites

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/run"
)

// KEPTest is a test that the KEP names.
type KEPTest struct {
	// KEP is its name, or what the KEP says of it. Section is that of the test plan.
	KEP     string `json:"kep"`
	Section string `json:"section"`
	// Test are the tests here, each with its folder: kubernetes/pkg/…:TestX/sub, or
	// test-e2e/…: the text of a spec.
	Test Tests `json:"test,omitempty"`
	// Why says why it is another test, or none.
	Why string `json:"why,omitempty"`
}

// KEPTests are all of them.
type KEPTests []KEPTest

// Tests are a list, or one test alone.
type Tests []string

// UnmarshalJSON reads both.
func (t *Tests) UnmarshalJSON(b []byte) error {
	*t = Tests{""}
	if json.Unmarshal(b, &(*t)[0]) == nil {
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// ReadKEPTests reads the list at path.
func ReadKEPTests(path string) (KEPTests, error) {
	var entries KEPTests
	if err := files.ReadYAML(path, &entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.KEP == "" || !slices.Contains([]string{"unit", "integration", "e2e"}, e.Section) || len(e.Test) == 0 && e.Why == "" {
			return nil, run.Refuse(fmt.Sprintf("%s: %q in section %q, tests %q", path, e.KEP, e.Section, e.Test),
				"what the KEP says, unit, integration or e2e, and a test or why there is none", "edit the list")
		}
	}
	return entries, nil
}

// Table returns the list for people.
func (entries KEPTests) Table() string {
	var b strings.Builder
	b.WriteString("| | the KEP | here | |\n| --- | --- | --- | --- |\n")
	for _, e := range entries {
		cells := []string{e.Section, e.KEP, "", e.Why}
		if len(e.Test) > 0 {
			cells[2] = "`" + strings.Join(e.Test, "`, `") + "`"
		}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// Missing returns the tests of the list that are not there. The first part of a test's folder
// is a key of roots. The tests of a root that is "" are left out.
func (entries KEPTests) Missing(roots map[string]string) []string {
	var missing []string
	for _, e := range entries {
		for _, test := range e.Test {
			folder, name, _ := strings.Cut(test, ":")
			top, rest, _ := strings.Cut(folder, "/")
			if root, known := roots[top]; !known || root != "" && !has(filepath.Join(root, rest), strings.TrimSpace(name)) {
				missing = append(missing, test)
			}
		}
	}
	return missing
}

// function begins what names a test function, and maybe subtests, and not a spec.
var function = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)\w*`)

// has reports whether the Go files of a folder have a test. Of subtests it wants the first name, which
// go test prints with _ for each blank. A spec is one text of it.
func has(dir, name string) bool {
	f, pattern := function.FindString(name), "*.go"
	if f != "" {
		pattern = "*_test.go"
	}
	paths, _ := filepath.Glob(filepath.Join(dir, pattern))
	source := ""
	for _, path := range paths {
		content, _ := os.ReadFile(path) // one that cannot be read has no test
		source += string(content)
	}
	if f == "" {
		return name != "" && strings.Contains(source, name)
	}
	sub, _, _ := strings.Cut(strings.TrimPrefix(name[len(f):], "/"), "/")
	return strings.Contains(source, "func "+f+"(") && (strings.Contains(source, sub) || strings.Contains(source, strings.ReplaceAll(sub, "_", " ")))
}
