//go:build !linux

package cluster

import (
	"context"
	"errors"
	"io"

	"capacityv2.internal/scripts/workspace"
)

func startNodes(context.Context, workspace.Workspace, []*nodeSpec, *state, *launched, io.Writer) error {
	return errors.ErrUnsupported
}

// NodeInit is the first process of a node, which only Linux can have.
func NodeInit(context.Context, string) error { return errors.ErrUnsupported }
