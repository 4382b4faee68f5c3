// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"os"
	"regexp"
	"slices"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// runDisk is the GiB that a running cluster needs.
const runDisk = 3

// Plan is what [Plan.Prepare] found out and decided.
type Plan struct {
	Mode Mode
	// Started is the ID of the cluster that [Plan.Up] has started, "" if it has found one.
	Started string

	ws      workspace.Workspace
	options Options
	images  []node.Image
	nodes   int
	ports   []port
}

// NewPlan returns a plan that is not prepared.
func NewPlan(ws workspace.Workspace, o Options) *Plan {
	o.Components = cmp.Or(o.Components, ws.Components())
	return &Plan{ws: ws, options: o}
}

// Prepare chooses the mode and refuses at once what would fail later, before
// anything is built. As root on a Debian it installs the packages that are
// missing. A cluster that runs already is not refused: [Plan.Up] looks at it.
func (p *Plan) Prepare(ctx context.Context, s *run.Step) error {
	if err := requirePlainPath(p.ws.Root); err != nil {
		return err
	}
	var notice string
	var err error
	if p.Mode, notice, err = chooseMode(p.options, machine.NodeObstacle()); err != nil {
		return err
	}
	if notice != "" {
		s.Sayf("NOTE: %s", notice)
	}
	before, err := StatusOf(p.ws)
	if err != nil {
		return err
	}
	if p.nodes, err = chooseNodes(p.options, p.Mode, before.Nodes); err != nil {
		return err
	}
	s.Sayf("mode: %s (%s)", p.Mode, p.Mode.Describe(p.nodes))
	if p.ports, err = choosePorts(p.Mode, os.Getenv); err != nil {
		return err
	}
	if before.Alive {
		return nil
	}
	if err := toolchain.EnsurePrograms(ctx, s, needs(p.Mode)...); err != nil {
		return err
	}
	if err := toolchain.RequireDisk(p.ws.Work, runDisk); err != nil {
		return err
	}
	if err := machine.RequireBridge(p.nodes); err != nil {
		return err
	}
	return requirePorts(p.ports)
}

// plainPath has nothing that a shell or a list of mounts takes apart.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./@+-]+$`)

// requirePlainPath refuses a checkout where upstream's scripts would stumble.
func requirePlainPath(root string) error {
	if plainPath.MatchString(root) {
		return nil
	}
	return run.Refuse("the checkout is in "+root,
		"a path without spaces and other special characters, which upstream's scripts do not quote", "move the checkout")
}

// needs are the programs of the system that the mode asks for: those that Go cannot
// build.
func needs(m Mode) []string {
	programs := []string{"bash", "curl", "openssl", "pgrep", "ps", "ss"} // hack/local-up-cluster.sh
	if m == ModeFull {
		// For the node's network, kube-proxy, the kubelet; the pause image; runc, which refuses
		// pods without Seccomp.
		programs = append(programs, "ip", "iptables", "mount", "gcc", "pkg-config", toolchain.Seccomp)
	}
	return programs
}

// Components returns the programs that the plan's mode runs.
func (p *Plan) Components() []string {
	if p.Mode == ModeFull {
		return Components()
	}
	return components
}

// Tools builds the programs that the plan's mode needs beside them.
func (p *Plan) Tools(ctx context.Context, s *run.Step) error {
	needed := []toolchain.Tool{toolchain.Etcd, toolchain.Certificates}
	if p.Mode == ModeFull {
		needed = slices.Concat(needed, toolchain.NodeTools)
	}
	return toolchain.BuildTools(ctx, p.ws, s, needed...)
}

// Folder is that of the components.
func (p *Plan) Folder() string { return p.options.Components }
