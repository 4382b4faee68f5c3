// Package tools is what is built, or installed, to work with: pinned programs from source,
// and Debian packages.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// Tool is a set of programs of one module, pinned in scripts/pins.
type Tool struct {
	pin string
	// programs maps a file below the folder for tools to its package.
	programs map[string]string
	tags     string
	ldflags  string
	env      []string
}

// Build builds the tools into the workspace's folder for them, unless they were built from
// the same pins.
func Build(ctx context.Context, ws workspace.Workspace, s *progress.Step, tools ...Tool) error {
	for _, t := range tools {
		if err := t.build(ctx, ws, s); err != nil {
			return err
		}
	}
	return nil
}

func (t Tool) build(ctx context.Context, ws workspace.Workspace, s *progress.Step) error {
	stamp, err := t.stamp(ws.Pin(t.pin))
	if err != nil {
		return err
	}
	stampFile := filepath.Join(ws.Bin(), ".stamps", t.pin)
	if old, err := os.ReadFile(stampFile); err == nil && string(old) == stamp && t.present(ws.Bin()) {
		return nil
	}
	s.Sayf("building %s", t.pin)
	for file, pkg := range t.programs {
		out := filepath.Join(ws.Bin(), filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		args := []string{"build", "-mod=readonly"}
		if t.tags != "" {
			args = append(args, "-tags", t.tags)
		}
		args = append(args, "-ldflags", strings.TrimSpace("-s -w "+t.ldflags), "-o", out, pkg)
		if err := toolchain.GoEnv(ctx, ws.Pin(t.pin), append([]string{"GOWORK=off"}, t.env...), s.Log, args...); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(stampFile), 0o755); err != nil {
		return err
	}
	return os.WriteFile(stampFile, []byte(stamp), 0o644)
}

// stamp stands for all that decides the programs' content.
func (t Tool) stamp(dir string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, t.programs, t.tags, t.ldflags, t.env, toolchain.Env())
	for _, f := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return "", fmt.Errorf("pin %s: %w", t.pin, err)
		}
		fmt.Fprintf(h, "%s %d\n%s", f, len(b), b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (t Tool) present(bin string) bool {
	for file := range t.programs {
		if _, err := os.Stat(filepath.Join(bin, filepath.FromSlash(file))); err != nil {
			return false
		}
	}
	return true
}
