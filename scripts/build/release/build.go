// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// BuildComponents builds the named programs of a project's patched tree for this
// machine into out, stamped with our version. The go command leaves those as they are
// that out holds already.
func BuildComponents(ctx context.Context, ws workspace.Workspace, project string, log io.Writer, out string, programs ...string) error {
	p, err := ws.Project(project)
	if err != nil {
		return err
	}
	stamp, err := ReadStamp(ctx, ws, p)
	if err != nil {
		return err
	}
	return Build(ctx, p.Tree(), stamp, log, out, programs...)
}

// Build is [BuildComponents] for any tree and stamp.
func Build(ctx context.Context, tree string, stamp Stamp, log io.Writer, out string, programs ...string) error {
	known := packages(stamp.Project)
	var build []string
	for _, name := range programs {
		if known[name] == "" {
			return fmt.Errorf("%s is not a program of the %s release", name, stamp.Project)
		}
		build = append(build, known[name])
		// The go command overwrites programs only, not what a broken copy left.
		path := filepath.Join(out, name)
		if _, err := buildinfo.ReadFile(path); err != nil {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return toolchain.BuildFor(ctx, tree, out, stamp.Ldflags(), nil, log, build...)
}
