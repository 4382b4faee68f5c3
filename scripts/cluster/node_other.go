//go:build !linux

package cluster

import (
	"context"
	"errors"
	"io"
	"os/exec"

	"capacityv2.internal/scripts/workspace"
)

func startNode(context.Context, workspace.Workspace, *node, *nodeSpec, *state, io.Writer) (*exec.Cmd, error) {
	return nil, errors.ErrUnsupported
}

// NodeInit is the first process of a node, which only Linux can have.
func NodeInit(context.Context, string) error { return errors.ErrUnsupported }
