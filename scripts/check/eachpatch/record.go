// SPDX-License-Identifier: Apache-2.0

package eachpatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// record is a folder with an empty file for each check that has passed. The name of a file is a hash of all that it
// depends on.
type record struct {
	dir string
	// checks stands for the Go release, how it is run, and the other trees.
	checks string
}

// verified is the folder of the record. CI keeps it from one run to the next, as long as the code that checks is the same;
// who changes that code removes it.
func verified(ws workspace.Workspace) string { return filepath.Join(ws.Work, "verified") }

// recordOf opens the record for a project, with what its own tree is compiled against: the trees of the others, and the
// go.work that says so.
func recordOf(ctx context.Context, ws workspace.Workspace, p workspace.Project, log io.Writer) (record, error) {
	inputs, err := otherInputs(ctx, ws, p, log)
	if err != nil {
		return record{}, err
	}
	return openRecord(ctx, verified(ws), slices.Concat(p.TestArgs, inputs)...)
}

func openRecord(ctx context.Context, dir string, more ...string) (record, error) {
	version, err := toolchain.GoValue(ctx, "GOVERSION")
	if err != nil {
		return record{}, err
	}
	checks := append(toolchain.Env(), version, runtime.GOARCH)
	return record{dir, strings.Join(append(checks, more...), "\n")}, nil
}

func (r record) file(of []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q", r.checks, of))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:]))
}

// has reports whether the check of something has passed.
func (r record) has(of ...string) bool {
	_, err := os.Stat(r.file(of))
	return err == nil
}

// add records that it has.
func (r record) add(of ...string) error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(r.file(of), nil, 0o644)
}
