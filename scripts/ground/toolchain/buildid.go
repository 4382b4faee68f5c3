// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"fmt"
	"io"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// BuildID names a compiled package. Two modules or workspaces that have the same one of a package share what is compiled.
type BuildID struct{ Package, ID string }

// BuildIDs compiles packages, and returns the build IDs of these and of all that they import, which come before them.
func BuildIDs(ctx context.Context, dir string, log io.Writer, packages ...string) ([]BuildID, error) {
	args := append([]string{"list", "-export", "-deps", "-tags", Tags, "-f", "{{.ImportPath}} {{.BuildID}}"}, packages...)
	out, err := run.Cmd{Dir: dir, Env: Eager(), Log: log, Name: "go", Args: args}.Output(ctx)
	if err != nil {
		return nil, err
	}
	var ids []BuildID
	for line := range strings.Lines(string(out)) {
		var id BuildID
		if id.Package, id.ID, _ = strings.Cut(strings.TrimSpace(line), " "); id.ID == "" && id.Package != "unsafe" {
			return nil, fmt.Errorf("go list -export gives no build ID of %s", id.Package)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
