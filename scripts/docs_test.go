package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/ground/toolchain"
)

// TestFolders checks that CONTRIBUTING.md has a line for each folder of the tooling, and for
// no other.
func TestFolders(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("`scripts/([a-z0-9]+)` ").FindAllStringSubmatch(string(page), -1) {
		named = append(named, m[1])
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, folders) {
		t.Errorf("the page has the folders %v, want %v", named, folders)
	}
}

// TestGoVersion checks that the workflows and the pages name the Go release of the tooling.
func TestGoVersion(t *testing.T) {
	version := strings.TrimPrefix(toolchain.GoVersion, "go")
	for path, want := range map[string]int{"../README.md": 1, "../CONTRIBUTING.md": 1, "../.github/actions/prepare/action.yaml": 1} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`(?:Go|go-version:) (\d+\.\d+\.\d+)`).FindAllStringSubmatch(string(content), -1)
		if len(named) != want {
			t.Errorf("%s names the Go release %d times, want %d", path, len(named), want)
		}
		for _, m := range named {
			if m[1] != version {
				t.Errorf("%s has Go %s, want %s", path, m[1], version)
			}
		}
	}
}

// TestComplaints checks that the tests that docs/explanation/complaints.md names are there and fail without the
// series, and that it has all specs that were written for it.
func TestComplaints(t *testing.T) {
	page, err := os.ReadFile("../docs/explanation/complaints.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, folder := range []string{"../test-e2e", "../test-integration"} {
		list, err := failswithout.ReadList(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Suites {
			for _, g := range s.Groups {
				for _, test := range g.Tests {
					known[test] = g.GateOff == failswithout.Fails && g.Stock == failswithout.Fails
					if strings.HasPrefix(test, "CSIStorageCapacity complaints ") && !strings.Contains(string(page), "`"+test+"`") {
						t.Errorf("%s/fails-without.yaml has %q, which is not in the page", folder, test)
					}
				}
			}
		}
	}
	for _, m := range regexp.MustCompile("`((?:CSIStorageCapacity [a-z]|Test)[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		if !known[m[1]] {
			t.Errorf("the page names %q, which fails without the series in no fails-without.yaml: correct one of them", m[1])
		}
	}
}
