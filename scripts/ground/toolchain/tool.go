// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// Tool is the programs that a module of scripts/pins names as tools.
type Tool struct {
	pin string
	// folder is the one below that for all tools; "" for itself.
	folder string
	// from is what the go command names the only program, if that is not the pin.
	from string
	// flags are those of go build.
	flags, env []string
}

// Staticcheck, Actionlint and Promtool check code, workflows and alerts.
var (
	Staticcheck = Tool{pin: "staticcheck"}
	Actionlint  = Tool{pin: "actionlint"}
	// Promtool finds no targets by itself here, so it needs no clients of clouds.
	Promtool = Tool{pin: "promtool", flags: []string{"-tags", "remove_all_sd"}}
)

// Etcd serves the cluster, the integration tests and code generation.
var Etcd = Tool{pin: "etcd", from: "server", flags: []string{"-tags", Tags}}

// Certificates makes those of the cluster; without it upstream's script would download one.
var Certificates = Tool{pin: "cfssl"}

// NodeTools are the container runtime and the network of a node.
var NodeTools = []Tool{
	{pin: "containerd", flags: []string{"-tags", "no_btrfs,no_devmapper,no_zfs,netgo,osusergo,static_build"}},
	// The one tool that needs C: seccomp, without which no ordinary pod starts.
	{pin: "runc", flags: []string{"-tags", "netgo,osusergo,seccomp", "-ldflags", Strip + " -extldflags -static"}, env: []string{"CGO_ENABLED=1"}},
	{pin: "cni", folder: "cni"},
}

// SpecTools are what the end-to-end specs need beside a cluster: the program that runs
// them side by side, and a sidecar that upstream's mock driver asks for.
var SpecTools = []Tool{{pin: "ginkgo"}, {pin: "external-attacher", flags: []string{"-tags", Tags}}}

// BuildTools builds the tools into the workspace's folder for them. The go command leaves those alone that it
// would build in the same way again, and fetches a later release of itself where a tool needs one.
func BuildTools(ctx context.Context, ws workspace.Workspace, s *run.Step, tools ...Tool) error {
	for _, t := range tools {
		s.Sayf("%s", t.pin)
		out := filepath.Join(ws.Bin(), t.folder)
		flags := slices.Concat([]string{"-mod=readonly", "-ldflags", Strip}, t.flags)
		if err := Compile(ctx, ws.Pin(t.pin), out+"/", append([]string{"GOWORK=off", "GOTOOLCHAIN=" + cmp.Or(os.Getenv("GOTOOLCHAIN"), "auto")}, t.env...), s.Log, flags, "tool"); err != nil {
			return err
		}
		if t.from != "" {
			if err := link(filepath.Join(out, t.pin), t.from); err != nil {
				return err
			}
		}
	}
	return nil
}

// link makes path a link to the program beside it, of which the go command knows the name.
func link(path, to string) error {
	if have, err := os.Readlink(path); err == nil && have == to {
		return nil
	}
	return errors.Join(os.RemoveAll(path), os.Symlink(to, path))
}
