package main

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestArchitecture checks that docs/architecture.md has a paragraph for each folder
// of the tooling, and for no other.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("`scripts/([a-z]+)` ").FindAllStringSubmatch(string(page), -1) {
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
