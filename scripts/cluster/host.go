package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/workspace"
)

// hostTrees are what a kubelet keeps on the host, and what has to be away, or
// empty, before ours starts there.
var hostTrees = []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers"}

// kernelSettings are written by the kubelet, and by kube-proxy, for the whole
// machine.
var kernelSettings = []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet"}

// recordHost records what a node on the host itself will make and change.
func recordHost(ws workspace.Workspace, st *state) error {
	for _, t := range hostTrees {
		st.Folders = append(st.Folders, machine.MissingFolders(filepath.Dir(t), machine.Exists)...)
	}
	st.Trees = hostTrees
	for _, name := range []string{"kubepods", "kubepods.slice"} {
		for _, g := range machine.GroupPaths(name) {
			if !machine.Exists(g) {
				st.Cgroups = append(st.Cgroups, g)
			}
		}
	}
	for name := range node.Settings {
		recordSetting(st, name)
	}
	for _, name := range kernelSettings {
		recordSetting(st, name)
	}
	keep, err := machine.HasKubernetesRules()
	if err != nil {
		return err
	}
	st.KeepRules = keep
	return st.willMake(ws, node.FlexVolumes)
}

func recordSetting(st *state, name string) {
	file := filepath.Join("/proc/sys", name)
	if b, err := os.ReadFile(file); err == nil {
		st.set(file, string(b))
	}
}

// removePods deletes all pods through the API while the kubelet still runs, so
// that it takes them away from the user's container runtime.
func removePods(ctx context.Context, st *state, log io.Writer) {
	_, err := kubectl(ctx, st, "delete", "deployments,daemonsets,statefulsets,replicasets,replicationcontrollers,cronjobs,jobs,pods",
		"--all", "--all-namespaces", "--grace-period=1", "--timeout=25s")
	if err != nil {
		_, _ = io.WriteString(log, "pods stay in the container runtime: "+err.Error()+"\n")
	}
}

// cleanHost unmounts the kubelet's volumes and removes its packet filter rules.
func cleanHost(st *state) error {
	if err := machine.UnmountBelow(hostTrees[0]); err != nil || st.KeepRules {
		return err
	}
	return machine.RemoveKubernetesRules()
}
