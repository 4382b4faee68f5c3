package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"capacityv2.internal/scripts/node"
)

// launched is what was started and is not ready yet.
type launched struct {
	// ended gets an error when a process has ended.
	ended chan error
	// gates keep nodes waiting: see [node.GoOn].
	gates []*os.File
}

func newLaunched() *launched { return &launched{ended: make(chan error, maxNodes)} }

// watch waits for a process that was started.
func (l *launched) watch(name string, cmd *exec.Cmd) {
	go func() { l.ended <- fmt.Errorf("%s ended before the cluster was ready (%v)", name, cmd.Wait()) }()
}

// tell lets what waits at the gates go on, once.
func (l *launched) tell() error {
	var errs []error
	for _, g := range l.gates {
		_, err := g.WriteString(node.GoOn)
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
