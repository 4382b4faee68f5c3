// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const spdxLine = "// SPDX-License-Identifier: Apache-2.0"

// TestLicenseLines checks that each Go file of ours begins with its license, as tools that collect licenses want it.
func TestLicenseLines(t *testing.T) {
	list, err := exec.Command("git", "-C", "..", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.go").Output()
	if err != nil {
		t.Skipf("not a checkout of git: %v", err)
	}
	files := strings.Fields(string(list))
	if len(files) < 100 {
		t.Fatalf("git names %d Go files only", len(files))
	}
	for _, name := range files {
		file, err := os.Open("../" + name)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(file)
		if scanner.Scan(); scanner.Text() != spdxLine {
			t.Errorf("%s: found %q in the first line, expected %q", name, scanner.Text(), spdxLine)
		}
		file.Close()
	}
}
