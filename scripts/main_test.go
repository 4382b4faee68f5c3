// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestMakefile checks that the Makefile has the verbs of the program, and no others.
func TestMakefile(t *testing.T) {
	content, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "VERBS := ")
	line, _, _ := strings.Cut(rest, "\n")
	var verbs []string
	for _, verb := range root().Commands() {
		if !verb.Hidden {
			verbs = append(verbs, verb.Name())
		}
	}
	got := strings.Fields(line)
	slices.Sort(got)
	slices.Sort(verbs)
	if !slices.Equal(got, verbs) || len(got) != 14 {
		t.Errorf("the Makefile has the verbs %q, and the program %q, want the same fourteen", got, verbs)
	}
}

// TestWings checks that imports run from one wing to those below it.
func TestWings(t *testing.T) {
	wings := []string{"check", "cluster", "build", "patch", "ground"}
	out, err := exec.Command("go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .TestImports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	wing := func(pkg string) int {
		rest, ours := strings.CutPrefix(pkg, "capacityv2.internal/scripts/")
		if !ours {
			return len(wings)
		}
		top, _, _ := strings.Cut(rest, "/")
		return slices.Index(wings, top)
	}
	arrows := 0
	for line := range strings.Lines(string(out)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		if from == "capacityv2.internal/scripts" || wing(to) == len(wings) {
			continue
		}
		arrows++
		if wing(from) < 0 || wing(from) > wing(to) {
			t.Errorf("%s imports %s, which is above it", from, to)
		}
	}
	if arrows < 50 {
		t.Errorf("%d imports of ours, want all of them", arrows)
	}
}
