// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/workspace"
)

// TestAllCode: no Go file of ours is left out when code is checked.
func TestAllCode(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ourFiles(t.Context(), workspace.Workspace{Root: root}, "*.go")
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		if !slices.ContainsFunc(allCode, func(code goCode) bool { return strings.HasPrefix(file, code.folder+"/") }) {
			t.Errorf("%s is not vetted", file)
		}
	}
	// A pattern such as ./... leaves out the modules below a folder.
	modules, err := ourFiles(t.Context(), workspace.Workspace{Root: root}, "go.mod", "*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range modules {
		folder := path.Dir(file)
		if path.Dir(folder) != "scripts/pins" && !slices.ContainsFunc(allCode, func(code goCode) bool { return folder == code.folder }) {
			t.Errorf("%s is not vetted", folder)
		}
	}
}
