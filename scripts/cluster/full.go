package cluster

import (
	"context"
	"os"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

// startFull starts the nodes in namespaces of their own. The first one runs
// upstream's script; the others join when that is done.
func startFull(ctx context.Context, ws workspace.Workspace, p *Plan, sc script, st *state, l *launched, s *progress.Step) error {
	taken, err := machine.HostNetworks()
	if err != nil {
		return err
	}
	network, err := machine.ChooseNetwork(taken)
	if err != nil {
		return err
	}
	image, err := node.PauseImage(ws.Tree())
	if err != nil {
		return err
	}
	tarball, err := node.WritePauseImage(ctx, ws.Tree(), placesOf(ws).images(), image, s.Log)
	if err != nil {
		return err
	}
	tarballs, err := node.WriteImages(ctx, p.options.Images, placesOf(ws).images())
	if err != nil {
		return err
	}
	nodes := node.NewAll(ws.Cluster(), network, p.nodes)
	var specs []*node.Spec
	for i, n := range nodes {
		spec, err := n.Prepare(ws.Bin(), image, nodes)
		if err != nil {
			return err
		}
		spec.Log, spec.ContainerdLog = placesOf(ws).nodeLog(n.Name), placesOf(ws).containerdLog(n.Name)
		spec.Images = append([]string{tarball}, tarballs...)
		group := st.group()
		if i == 0 {
			sc.node, sc.cgroupRoot = n, group
			spec.Env, spec.Programs = sc.env(), []node.Program{sc.program()}
		} else {
			group += "-" + n.Name
			spec.Joins, spec.Env, spec.Programs = true, list(sc.commonEnv()), sc.joiningPrograms(n, group)
		}
		if err := machine.MakeGroup(group, record{ws, st}); err != nil {
			return err
		}
		s.Sayf("%s has the address %s, images: %s", n.Name, n.Address.Addr(), image)
		specs = append(specs, spec)
	}
	for _, m := range specs[0].Folders { // the same for all
		if err := st.willMake(ws, m.To); err != nil {
			return err
		}
		if err := os.MkdirAll(m.To, 0o755); err != nil {
			return err
		}
	}
	return startNodes(ws, specs, st, l)
}
