// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// Start is for Linux.
func (s *Spec) Start(string, string) (*exec.Cmd, *os.File, error) {
	return nil, nil, errors.ErrUnsupported
}

// Init is the first process of a node, which only Linux can have.
func Init(context.Context, string) error { return errors.ErrUnsupported }

// Connect is for Linux.
func Connect(string, []*Spec, []int) error { return errors.ErrUnsupported }
