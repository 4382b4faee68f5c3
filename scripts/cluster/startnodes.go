package cluster

import (
	"slices"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/workspace"
)

// startNodes starts the first process of each node in namespaces of its own, and
// connects the nodes. All is recorded in st before the processes go on.
func startNodes(ws workspace.Workspace, specs []*node.Spec, st *state, l *launched) error {
	var pids []int
	for _, spec := range specs {
		cmd, gate, err := spec.Start(ws.Root, InitVerb)
		if err != nil {
			return err
		}
		l.gates = append(l.gates, gate)
		l.watch(spec.Node.Name, cmd)
		p, err := machine.NewProcess(spec.Node.Name, cmd.Process.Pid, st.ID)
		if err != nil {
			return err
		}
		// The first one to end: the control plane comes last.
		st.Processes = slices.Insert(st.Processes, 0, p)
		if err := st.save(ws); err != nil {
			return err
		}
		pids = append(pids, p.PID)
	}
	st.Link = "cap-" + st.ID
	if err := st.save(ws); err != nil {
		return err
	}
	if err := node.Connect(st.Link, specs, pids); err != nil {
		return err
	}
	err := l.tell()
	_ = l.gates[0].Close()
	l.gates = l.gates[1:]
	return err
}
