package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/workspace"
)

// gated waits for a word on its fourth file and ends without one: a script that
// nobody recorded must not run.
const gated = `read -r go <&3 && [ "$go" = go ] && exec 3<&- && exec bash "$0" "$@"`

// startPlain starts the script on the host, as the leader of a session of its
// own, so that an interrupt at the terminal does not reach it.
func startPlain(ws workspace.Workspace, s script, st *state, l *launched) error {
	gate, open, err := os.Pipe()
	if err != nil {
		return err
	}
	defer open.Close()
	log, err := os.Create(placesOf(ws).scriptLog())
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("bash", "-c", gated, s.path(), "-o", s.options.Components)
	cmd.Dir, cmd.Env = ws.Tree(), s.env()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{gate}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	gate.Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.path(), err)
	}
	l.watch(localUp, cmd)
	p, err := machine.NewProcess(filepath.Base(localUp), cmd.Process.Pid, st.ID)
	if err != nil {
		return err
	}
	st.Processes = append(st.Processes, p)
	if err := st.save(ws); err != nil {
		return err
	}
	_, err = open.WriteString(node.GoOn)
	return err
}
