// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"
)

// cgroupRoot is where the control group file systems are mounted: version 2, or one folder for each hierarchy of
// version 1.
const cgroupRoot = "/sys/fs/cgroup"

// MakeGroup makes a control group in every hierarchy. Controllers that the root passes on for it stay on: groups of
// others may use them by the time it is removed.
func MakeGroup(name string) error {
	group := &cgroups.Cgroup{Path: "/" + name, Resources: &cgroups.Resources{SkipDevices: true}}
	var manager cgroups.Manager
	var err error
	if cgroups.IsCgroup2UnifiedMode() {
		manager, err = fs2.NewManager(group, filepath.Join(cgroupRoot, name))
	} else {
		manager, err = fs.NewManager(group, nil)
	}
	if err != nil {
		return err
	}
	return manager.Apply(-1) // without a process
}

// Groups returns the folders of the groups at the top of all hierarchies whose name begins so.
func Groups(prefix string) []string {
	unified, _ := filepath.Glob(filepath.Join(cgroupRoot, prefix+"*"))
	others, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", prefix+"*"))
	return append(unified, others...)
}

// RemoveGroups removes the groups whose name begins so, with all groups below them.
func RemoveGroups(ctx context.Context, prefix string) error {
	var errs []error
	for _, dir := range Groups(prefix) {
		var err error
		// The kernel ends the last processes a moment after their parent.
		WaitUntil(ctx, 10*time.Second, func() bool { err = cgroups.RemovePath(dir); return err == nil })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// groupObstacle says what keeps the kubelet from making control groups; nil means nothing does.
func groupObstacle() error {
	probe := fmt.Sprintf("capacityv2-probe-%d", os.Getpid())
	if err := errors.Join(MakeGroup(probe), RemoveGroups(context.Background(), probe)); err != nil {
		return err
	}
	has, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"))
	for _, need := range []string{"cpu", "cpuset", "memory", "pids"} {
		// Inside a container, a group of version 2 that holds processes cannot pass controllers on.
		if !slices.Contains(strings.Fields(string(has)), need) && (err == nil || !Exists(filepath.Join(cgroupRoot, need))) {
			return fmt.Errorf("no controller %q for groups below %s", need, cgroupRoot)
		}
	}
	return nil
}
