package prove

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"capacityv2.internal/scripts/toolchain"
)

// code is what checks a prefix. What another version of it has checked counts for nothing.
//
//go:embed prefixes.go record.go
var code embed.FS

// record is a folder with an empty file for each tree and its packages that have
// passed. The name of a file is a hash of all that the checks depend on.
type record struct {
	dir string
	// checks stands for the checks themselves and the Go release.
	checks string
}

func openRecord(ctx context.Context, dir string, more ...string) (record, error) {
	version, err := toolchain.GoValue(ctx, "GOVERSION")
	if err != nil {
		return record{}, err
	}
	ours, err := toolchain.SourceHash(code)
	if err != nil {
		return record{}, err
	}
	theirs, err := toolchain.Hash()
	if err != nil {
		return record{}, err
	}
	checks := append(toolchain.Env(), version, runtime.GOOS, runtime.GOARCH, ours, theirs)
	checks = append(checks, more...)
	return record{dir, strings.Join(checks, "\n")}, nil
}

func (r record) file(tree string, pkgs []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%q", r.checks, tree, pkgs))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:]))
}

// has reports whether the packages of a tree have passed.
func (r record) has(tree string, pkgs []string) bool {
	_, err := os.Stat(r.file(tree, pkgs))
	return err == nil
}

// add records that they have.
func (r record) add(tree string, pkgs []string) error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(r.file(tree, pkgs), nil, 0o644)
}
