package toolchain

import (
	"cmp"
	"context"
	"crypto/rand"
	"debug/buildinfo"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

// TestCompileCounts builds a program of three packages that nobody has built before: each has a constant
// of chance.
func TestCompileCounts(t *testing.T) {
	dir := t.TempDir()
	chance := rand.Text()
	write := func(file, content string) {
		t.Helper()
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range map[string]string{
		"go.mod":    "module m\n\ngo 1.26\n",
		"main.go":   "package main\n\nimport \"m/a\"\n\nfunc main() { print(a.A) }\n",
		"a/a.go":    "package a\n\nimport \"m/b\"\n\nconst A = b.B\n",
		"b/b.go":    "package b\n\nconst B = \"" + chance + "\"\n",
		"bad/b.go":  "package main\n\nfunc main() { var _ int = \"\" }\n",
		"bad2/b.go": "package bad2\n\nimport _ \"m/nowhere\"\n",
	} {
		write(file, content)
	}
	for _, step := range []struct{ name, main, pkg, begin, end, failure string }{
		{name: "new", pkg: ".", begin: "compiled 0 of 3 packages", end: "compiled 3 of 3 packages, linking"},
		{name: "known", pkg: "."},
		{name: "changed", main: "println", pkg: ".", begin: "compiled 0 of 1 packages", end: "compiled 1 of 1 packages, linking"},
		{name: "does not compile", pkg: "./bad", begin: "compiled 0 of 1 packages", end: "compiled 1 of 1 packages, linking", failure: "cannot use"},
		{name: "does not exist", pkg: "./bad2", failure: "nowhere"},
	} {
		if step.main != "" {
			write("main.go", "package main\n\nimport \"m/a\"\n\nfunc main() { "+step.main+"(a.A) }\n")
		}
		var begin, end, after string
		err := run.NewReporter(t.Output(), "test", t.TempDir()).Run(t.Context(), run.Task{Name: step.name, Do: func(ctx context.Context, s *run.Step) error {
			log := &run.Lines{Each: func(string) { end = run.MeterOf(ctx).String(); begin = cmp.Or(begin, end) }}
			err := Compile(ctx, dir, filepath.Join(dir, "out")+"/", []string{"GOWORK=off"}, log, nil, step.pkg)
			after = run.MeterOf(ctx).String()
			return err
		}})
		if (err != nil) != (step.failure != "") || err != nil && !strings.Contains(err.Error(), step.failure) {
			t.Errorf("%s: %v, want an error with %q", step.name, err, step.failure)
		}
		if begin != step.begin || end != step.end {
			t.Errorf("%s: from %q to %q, want from %q to %q", step.name, begin, end, step.begin, step.end)
		}
		if after != "" {
			t.Errorf("%s: %q when nothing compiles any more", step.name, after)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "m")); err != nil {
		t.Error(err)
	}
}

// TestBuildForAnyMachine: what the environment of a user asks the compiler for gets into no program.
func TestBuildForAnyMachine(t *testing.T) {
	t.Setenv("GOAMD64", "v3")
	t.Setenv("GOARM64", "v9.0")
	t.Setenv("GOEXPERIMENT", "jsonv2")
	t.Setenv("GOFIPS140", "latest")
	dir := t.TempDir()
	for file, content := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
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
