// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"capacityv2.internal/scripts/ground/run"
)

// Namespaces are what a node has of its own.
const Namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// NodeObstacle says what keeps a node from running on this machine; "" means nothing does.
func NodeObstacle() string {
	if os.Geteuid() != 0 {
		return "not root"
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: Namespaces}
	if err := cmd.Run(); err != nil {
		return "no namespaces: " + err.Error()
	}
	if err := groupObstacle(); err != nil {
		return "control groups cannot be made: " + err.Error()
	}
	return ""
}

// RequireBridge refuses where the nodes cannot be connected.
func RequireBridge(nodes int) error {
	if nodes < 2 {
		return nil
	}
	cmd := exec.Command("ip", "link", "add", "probe", "type", "bridge")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		return run.Refuse(fmt.Sprintf("no bridge for %d nodes: %v: %s", nodes, err, bytes.TrimSpace(out)),
			"a kernel that has bridges", "modprobe bridge, or make up NODES=1")
	}
	return nil
}
