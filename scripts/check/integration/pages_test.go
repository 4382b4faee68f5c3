// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPages: where a long run writes is there, and so are the suite, its test and its flags.
func TestPages(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for _, p := range []page{skew, shapes} {
		text, err := os.ReadFile(filepath.Join(root, p.path))
		if err != nil || !strings.Contains(string(text), "written by "+writer+" -->") {
			t.Errorf("%s has no section that is written by %s, error %v", p.path, writer, err)
		}
		code := ""
		files, _ := filepath.Glob(filepath.Join(root, "test-integration", p.suite, "*_test.go"))
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code += string(content)
		}
		wanted := []string{"func " + strings.Trim(p.test, "^$") + "(t ", `"` + p.report[1:] + `"`}
		for _, flag := range p.long {
			if regexp.MustCompile(`^-\w+\.`).MatchString(flag) {
				wanted = append(wanted, `"`+flag[1:]+`"`)
			}
		}
		for _, w := range wanted {
			if !strings.Contains(code, w) {
				t.Errorf("%s does not have %s", p.suite, w)
			}
		}
	}
	for _, suite := range append([]string{"./perf"}, suites...) {
		if files, _ := filepath.Glob(filepath.Join(root, "test-integration", suite, "*_test.go")); len(files) == 0 {
			t.Errorf("there is no suite %s", suite)
		}
	}
	for folder := range needsOf {
		if files, _ := filepath.Glob(filepath.Join(root, "test-integration", folder, "*_test.go")); len(files) == 0 {
			t.Errorf("there is no suite %s", folder)
		}
	}
}
