// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"debug/buildinfo"
	"path/filepath"
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
)

// TestBuildForAnyMachine: what the environment of a user asks the compiler for gets into no program.
func TestBuildForAnyMachine(t *testing.T) {
	t.Setenv("GOAMD64", "v3")
	t.Setenv("GOARM64", "v9.0")
	t.Setenv("GOEXPERIMENT", "jsonv2")
	t.Setenv("GOFIPS140", "latest")
	dir := t.TempDir()
	testtree.Write(t, dir, map[string]string{"go.mod": "module m\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"})
	if err := Build(t.Context(), dir, dir, t.Output(), "."); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if want, ok := map[string]string{"GOAMD64": "v1", "GOARM64": "v8.0", "GOEXPERIMENT": "", "GOFIPS140": ""}[s.Key]; ok && s.Value != want {
			t.Errorf("built with %s=%s, want %q", s.Key, s.Value, want)
		}
	}
}
