//go:build !linux

package machine

import (
	"errors"
	"net/netip"
	"runtime"
)

// NodeObstacle says what keeps a node from running on this machine.
func NodeObstacle(bool) string { return "the kubelet runs on Linux only, this is " + runtime.GOOS }

// RequireBridge has nothing to refuse: there are no nodes.
func RequireBridge(int) error { return nil }

func MakeGroup(string, Record) error { return errors.ErrUnsupported }

func RemoveGroup(string) error { return nil }

// HasDefaultRoute is not looked up here; false makes the API server announce an
// address of ours, which no pod ever uses without a node.
func HasDefaultRoute() bool { return false }

func hostRoutes() ([]netip.Prefix, error) { return nil, nil }

func CgroupV1() bool { return false }

func GroupPaths(string) []string { return nil }

func Groups(string) []string { return nil }

// RemoveLink has nothing to remove.
func RemoveLink(string) error { return nil }

func HasKubernetesRules() (bool, error) { return false, nil }

func RemoveKubernetesRules() error { return nil }

func UnmountBelow(string) error { return nil }

func DetachLoops(string) error { return nil }
