//go:build !linux

package cluster

import (
	"errors"
	"net/netip"
	"runtime"
)

// nodeObstacle says what keeps a node from running on this machine.
func nodeObstacle(bool) string { return "the kubelet runs on Linux only, this is " + runtime.GOOS }

func requireBridge(int) error { return nil }

func makeGroup(string, *state, func() error) error { return errors.ErrUnsupported }

func removeGroup(string) error { return nil }

// hasDefaultRoute is not looked up here; false makes the API server announce an
// address of ours, which no pod ever uses without a node.
func hasDefaultRoute() bool { return false }

func hostRoutes() ([]netip.Prefix, error) { return nil, nil }

func cgroupV1() bool { return false }

func groupPaths(string) []string { return nil }
