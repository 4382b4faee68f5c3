//go:build !linux

package cluster

import (
	"context"
	"errors"

	"capacityv2.internal/scripts/workspace"
)

func startNodes(workspace.Workspace, []*nodeSpec, *state, *launched) error {
	return errors.ErrUnsupported
}

// NodeInit is the first process of a node, which only Linux can have.
func NodeInit(context.Context, string) error { return errors.ErrUnsupported }
