package cluster

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/tools"
	"capacityv2.internal/scripts/workspace"
)

// runDisk is the GiB that a running cluster needs.
const runDisk = 3

// Plan is what [Plan.Prepare] found out and decided.
type Plan struct {
	Mode Mode

	ws      workspace.Workspace
	options *Options
	nodes   int
	ports   []port
}

// NewPlan returns a plan that is not prepared. Images may be added to the options until
// the cluster is brought up.
func NewPlan(ws workspace.Workspace, o *Options) *Plan {
	if o.Components == "" {
		o.Components = ws.Components()
	}
	return &Plan{ws: ws, options: o}
}

// Prepare chooses the mode and refuses at once what would fail later, before
// anything is built. As root on a Debian it installs the packages that are
// missing. A cluster that runs already is not refused: [Plan.Up] looks at it.
func (p *Plan) Prepare(ctx context.Context, s *progress.Step) error {
	ws, o := p.ws, *p.options
	if err := requirePlainPath(ws.Root); err != nil {
		return err
	}
	mode, notice, err := chooseMode(o, machine.NodeObstacle(o.RuntimeEndpoint != ""))
	if err != nil {
		return err
	}
	p.Mode = mode
	if notice != "" {
		s.Sayf("NOTE: %s", notice)
	}
	before, err := StatusOf(ws)
	if err != nil {
		return err
	}
	if p.nodes, err = chooseNodes(o, p.Mode, before.Nodes); err != nil {
		return err
	}
	s.Sayf("mode: %s (%s)", p.Mode, p.Mode.Describe(p.nodes))
	if p.ports, err = choosePorts(p.Mode, os.Getenv); err != nil {
		return err
	}
	if running, err := Running(ws); err != nil || running {
		return err
	}
	if err := tools.EnsurePrograms(ctx, s, needs(p.Mode)...); err != nil {
		return err
	}
	if err := toolchain.RequireDisk(ws.Work, runDisk); err != nil {
		return err
	}
	if p.Mode == ModeHost {
		if err := requireHost(o); err != nil {
			return err
		}
	}
	if err := machine.RequireBridge(p.nodes); err != nil {
		return err
	}
	return requirePorts(ctx, p.ports)
}

// plainPath has nothing that a shell or a list of mounts takes apart.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./@+-]+$`)

// requirePlainPath refuses a checkout where upstream's scripts would stumble.
func requirePlainPath(root string) error {
	if plainPath.MatchString(root) {
		return nil
	}
	return progress.Refuse("the checkout is in "+root, "a path without spaces and other special characters, which upstream's scripts do not quote",
		"move the checkout")
}

// requireHost refuses where a node on the host itself would get in the way of
// another one, or cannot work.
func requireHost(o Options) error {
	socket := strings.TrimPrefix(o.RuntimeEndpoint, "unix://")
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Type() != os.ModeSocket {
		return progress.Refuse("CONTAINER_RUNTIME_ENDPOINT names "+socket+", which is no socket", "the socket of a running container runtime",
			"start it, or make up without CONTAINER_RUNTIME_ENDPOINT")
	}
	for _, dir := range hostTrees {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return progress.Refuse(dir+" is not empty", "no other kubelet's state, which this one would take for its own",
				"make up without CONTAINER_RUNTIME_ENDPOINT, or stop the other kubelet and remove "+dir)
		}
	}
	if _, err := os.Stat(filepath.Join(node.CNIBin, "loopback")); err != nil {
		return progress.Refuse("no "+filepath.Join(node.CNIBin, "loopback"), "the CNI plugins of your container runtime there",
			"apt-get install containernetworking-plugins, and a link from /opt/cni/bin to /usr/lib/cni")
	}
	if !machine.HasDefaultRoute() {
		return progress.Refuse("no default route", "one: the API server announces its address", "ip route add default via GATEWAY")
	}
	return nil
}
