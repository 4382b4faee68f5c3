//go:build !linux

package machine

import (
	"context"
	"errors"
	"runtime"
)

// NodeObstacle says what keeps a node from running on this machine.
func NodeObstacle() string { return "the kubelet runs on Linux only, this is " + runtime.GOOS }

// RequireBridge has nothing to refuse: there are no nodes.
func RequireBridge(int) error { return nil }

func MakeGroup(string) error { return errors.ErrUnsupported }

func Groups(string) []string { return nil }

func RemoveGroups(context.Context, string) error { return nil }

func DetachLoops(string) error { return nil }
