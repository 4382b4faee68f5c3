// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// Strip are linker flags that leave out what only a debugger reads.
const Strip = "-s -w"

// Build builds the main packages pkgs from the module or workspace in dir into
// the folder out.
func Build(ctx context.Context, dir, out string, log io.Writer, pkgs ...string) error {
	return BuildFor(ctx, dir, out, Strip, nil, log, pkgs...)
}

// BuildFor is [Build] with other linker flags and more environment variables, such as
// GOARCH.
func BuildFor(ctx context.Context, dir, out, ldflags string, env []string, log io.Writer, pkgs ...string) error {
	return Compile(ctx, dir, out+string(filepath.Separator), env, log, []string{"-tags", Tags, "-ldflags", ldflags}, pkgs...)
}

// BuildPackages compiles the packages that match patterns, as far as they have
// more than tests: the go command takes the others for an error.
func BuildPackages(ctx context.Context, dir string, log io.Writer, patterns ...string) error {
	listed, err := list(ctx, dir, log, "{{if .GoFiles}}{{.ImportPath}}{{end}}", patterns)
	if err != nil {
		return err
	}
	pkgs := strings.Fields(listed)
	if len(pkgs) == 0 {
		return nil
	}
	// A single program would be written into dir.
	return Compile(ctx, dir, os.DevNull, nil, log, []string{"-tags", Tags}, pkgs...)
}

// Compile runs go build. out is a file, or a folder if it ends with a slash.
func Compile(ctx context.Context, dir, out string, env []string, log io.Writer, flags []string, pkgs ...string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	args := slices.Concat([]string{"build", "-v", "-o", out}, flags, pkgs)
	return run.Cmd{Dir: dir, Env: slices.Concat(Eager(), env, InTree(dir)), Log: log, Name: "go", Args: args}.Run(ctx)
}

// CompileTests compiles what the tests of the packages that match patterns consist of.
// Commands that run such tests side by side would each compile it.
func CompileTests(ctx context.Context, dir string, log io.Writer, patterns ...string) error {
	return Go(ctx, dir, log, append([]string{"list", "-export", "-test", "-deps", "-tags", Tags, "-f", ""}, patterns...)...)
}

// BuildTest builds the tests of the package pkg into the program out.
func BuildTest(ctx context.Context, dir, out string, log io.Writer, pkg string) error {
	return Go(ctx, dir, log, "test", "-c", NoVet, "-tags", Tags, "-ldflags", Strip, "-o", out, pkg)
}

// TestFolders returns the folders of the packages of the module in dir that have tests, relative to it and with slashes.
func TestFolders(ctx context.Context, dir string, env []string, log io.Writer) ([]string, error) {
	args := []string{"list", "-tags", Tags, "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./..."}
	out, err := run.Cmd{Dir: dir, Env: append(Env(), env...), Log: log, Name: "go", Args: args}.Output(ctx)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, folder := range strings.Fields(string(out)) {
		rel, err := filepath.Rel(dir, folder)
		if err != nil {
			return nil, err
		}
		folders = append(folders, filepath.ToSlash(rel))
	}
	return folders, nil
}

// PackageName returns the name in the package clauses of a package.
func PackageName(ctx context.Context, dir string, log io.Writer, pkg string) (string, error) {
	name, err := list(ctx, dir, log, "{{.Name}}", []string{pkg})
	return strings.TrimSpace(name), err
}

// list prints the packages that match patterns in the format of `go list -f`.
func list(ctx context.Context, dir string, log io.Writer, format string, patterns []string) (string, error) {
	args := append([]string{"list", "-tags", Tags, "-f", format}, patterns...)
	out, err := run.Cmd{Dir: dir, Env: append(Env(), InTree(dir)...), Log: log, Name: "go", Args: args}.Output(ctx)
	return string(out), err
}
