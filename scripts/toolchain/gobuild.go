package toolchain

import (
	"context"
	"io"
	"os"
	"strings"

	"capacityv2.internal/scripts/run"
)

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
	return Go(ctx, dir, log, append([]string{"build", "-tags", Tags, "-o", os.DevNull}, pkgs...)...)
}

// CompileTests compiles what the tests of the packages that match patterns consist of.
// Commands that run such tests side by side would each compile it.
func CompileTests(ctx context.Context, dir string, log io.Writer, patterns ...string) error {
	return Go(ctx, dir, log, append([]string{"list", "-export", "-test", "-deps", "-tags", Tags, "-f", ""}, patterns...)...)
}

// PackageName returns the name in the package clauses of a package.
func PackageName(ctx context.Context, dir string, log io.Writer, pkg string) (string, error) {
	name, err := list(ctx, dir, log, "{{.Name}}", []string{pkg})
	return strings.TrimSpace(name), err
}

// list prints the packages that match patterns in the format of `go list -f`.
func list(ctx context.Context, dir string, log io.Writer, format string, patterns []string) (string, error) {
	args := append([]string{"list", "-tags", Tags, "-f", format}, patterns...)
	out, err := run.Cmd{Dir: dir, Env: Env(), Log: log, Name: "go", Args: args}.Output(ctx)
	return string(out), err
}
