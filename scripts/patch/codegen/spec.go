// SPDX-License-Identifier: Apache-2.0

package codegen

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// specProtoc calls the machine's protoc. Its plugins write which one has called them: that has to be the pinned one, the
// only difference between them.
const specProtoc = `#!/bin/sh
set -o errexit
'%s' "$@"
sed -E -i.old 's|^(//[-[:space:]]*protoc +)v[0-9.]+$|\1v4.%s|' csi/*.pb.go
rm csi/*.old
`

// equipSpec puts a protoc where the Makefile of the CSI spec installs its own, in a folder that its .gitignore names.
func (r *Run) equipSpec(ctx context.Context, s *run.Step) error {
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		return err
	}
	// The types that the spec imports are in another package of Debian's.
	if _, err := os.Stat(filepath.Join(filepath.Dir(protoc), "..", "include", "google", "protobuf", "wrappers.proto")); err != nil {
		if err := toolchain.InstallPackages(ctx, s, "libprotobuf-dev"); err != nil {
			return err
		}
	}
	version, err := r.pinnedVersion("lib/go/Makefile", "PROTOC_VER")
	if err != nil {
		return err
	}
	env, err := toolchain.UpstreamEnv(ctx)
	if err != nil {
		return err
	}
	bin := filepath.Join(r.dir, "lib", "go", ".protoc", "bin")
	r.env = append(env, "GOBIN="+bin)
	return write(filepath.Join(bin, "protoc"), fmt.Sprintf(specProtoc, protoc, version), 0o755)
}
