// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/run"
)

// launched is what was started and is not ready yet.
type launched struct {
	// ended gets an error when a process has ended.
	ended chan error
	// gates keep nodes waiting: see [node.StartSignal].
	gates []*os.File
}

// watch waits for a process that was started.
func (l *launched) watch(name string, cmd *exec.Cmd) {
	go func() { l.ended <- fmt.Errorf("%s ended before the cluster was ready (%v)", name, cmd.Wait()) }()
}

// openGates lets what waits at the gates go on, once.
func (l *launched) openGates() error {
	var errs []error
	for _, g := range l.gates {
		_, err := g.WriteString(node.StartSignal)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// close closes the gates: what still waits there ends.
func (l *launched) close() {
	for _, g := range l.gates {
		_ = g.Close()
	}
}

// startControlPlane starts the script on the host, as the leader of a session of its own, so that an
// interrupt at the terminal does not reach it.
func (l *launched) startControlPlane(sc script, st *state) error {
	if err := st.willMake(node.FlexVolumes); err != nil {
		return err
	}
	program := sc.program()
	log, err := os.Create(program.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program.Args[0], program.Args[1:]...)
	cmd.Dir, cmd.Env = program.Dir, sc.env()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", localUp, err)
	}
	l.watch(localUp, cmd)
	return nil
}

// startNodes starts the nodes in namespaces of their own, and connects them. The first one runs
// upstream's script; the others join when that is done.
func (l *launched) startNodes(ctx context.Context, p *Plan, sc script, st *state, s *run.Step) error {
	specs, err := p.nodeSpecs(ctx, sc, st, s)
	if err != nil {
		return err
	}
	for _, m := range specs[0].Folders { // the same for all
		if err := st.willMake(m.To); err != nil {
			return err
		}
		if err := os.MkdirAll(m.To, 0o755); err != nil {
			return err
		}
	}
	var pids []int
	for _, spec := range specs {
		if err := machine.MakeGroup(st.nodeGroup(&spec.Node)); err != nil {
			return err
		}
		cmd, gate, err := spec.Start(p.ws.Root, InitVerb)
		if err != nil {
			return err
		}
		l.gates = append(l.gates, gate)
		l.watch(spec.Node.Name, cmd)
		pids = append(pids, cmd.Process.Pid)
	}
	if err := node.Connect(st.link(), specs, pids); err != nil {
		return err
	}
	err = l.openGates()
	_ = l.gates[0].Close()
	l.gates = l.gates[1:]
	return err
}

// nodeGroup is the control group below which the pods of a node have theirs.
func (st *state) nodeGroup(n *node.Node) string {
	if n.Name == node.Name(1) {
		return st.group()
	}
	return st.group() + "-" + n.Name
}

// nodeSpecs says how each node starts, and makes the folders and files of it.
func (p *Plan) nodeSpecs(ctx context.Context, sc script, st *state, s *run.Step) ([]*node.Spec, error) {
	taken, err := machine.HostNetworks()
	if err != nil {
		return nil, err
	}
	network, err := machine.ChooseNetwork(taken)
	if err != nil {
		return nil, err
	}
	places := placesOf(p.ws)
	pause, images, err := node.WriteImages(ctx, p.ws.Tree(), p.images, places.images(), s.Log)
	if err != nil {
		return nil, err
	}
	nodes := node.NewAll(p.ws.Cluster(), network, p.nodes)
	var specs []*node.Spec
	for i, n := range nodes {
		spec, err := n.Prepare(p.ws.Bin(), pause, nodes)
		if err != nil {
			return nil, err
		}
		spec.Log, spec.ContainerdLog, spec.Images = places.log(n.Name), places.log(n.Name+"-containerd"), images
		group := "/" + st.nodeGroup(n)
		if i == 0 {
			sc.node, sc.cgroupRoot = n, group
			spec.Env, spec.Programs = sc.env(), []node.Program{sc.program()}
		} else {
			spec.Joins, spec.Env, spec.Programs = true, list(sc.commonEnv()), sc.joiningPrograms(n, group)
		}
		s.Sayf("%s has the address %s, images: %s", n.Name, n.Address.Addr(), pause)
		specs = append(specs, spec)
	}
	return specs, nil
}
