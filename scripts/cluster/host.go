package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// hostTrees are what a kubelet keeps on the host, and what has to be away, or
// empty, before ours starts there.
var hostTrees = []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers"}

// kernelSettings are written by the kubelet, and by kube-proxy, for the whole
// machine.
var kernelSettings = []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet"}

// recordHost records what a node on the host itself will make and change.
func recordHost(ctx context.Context, ws workspace.Workspace, st *state, log io.Writer) error {
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
	for _, family := range families {
		chains, err := kubeChains(ctx, family, log)
		if err != nil {
			return err
		}
		st.KeepRules = st.KeepRules || len(chains) > 0
	}
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
func cleanHost(ctx context.Context, st *state, log io.Writer) error {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range mountsBelow(string(b), hostTrees[0]) {
		errs = append(errs, run.Cmd{Name: "umount", Args: []string{m}, Log: log}.Run(ctx))
	}
	if !st.KeepRules {
		for _, f := range families {
			errs = append(errs, removeRules(ctx, f, log))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow returns the mount points below dir, the inner ones first, from the
// content of /proc/self/mounts.
func mountsBelow(mounts, dir string) []string {
	var found []string
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			found = append(found, f[1])
		}
	}
	slices.Reverse(found)
	return found
}

// families are the commands for the packet filter; a machine may lack the second.
var families = []string{"iptables", "ip6tables"}

// rule is one rule, or one chain, of a table.
type rule struct {
	table string
	args  []string
}

// kubeChains returns the commands that remove every rule and chain of Kubernetes.
func kubeChains(ctx context.Context, family string, log io.Writer) ([]rule, error) {
	if _, err := exec.LookPath(family + "-save"); err != nil {
		return nil, nil
	}
	out, err := run.Cmd{Name: family + "-save", Log: log}.Output(ctx)
	if err != nil {
		return nil, err
	}
	return parseChains(out), nil
}

// parseChains reads the output of iptables-save. Rules that jump to a chain come
// before the chain: one in use cannot be removed.
func parseChains(save []byte) []rule {
	var table string
	var jumps, flushes, removals []rule
	for line := range bytes.Lines(save) {
		f := strings.Fields(string(line))
		switch {
		case len(f) == 0:
		case strings.HasPrefix(f[0], "*"):
			table = f[0][1:]
		case strings.HasPrefix(f[0], ":KUBE-"):
			flushes = append(flushes, rule{table, []string{"-F", f[0][1:]}})
			removals = append(removals, rule{table, []string{"-X", f[0][1:]}})
		case f[0] == "-A" && !strings.HasPrefix(f[1], "KUBE-") && strings.Contains(string(line), " -j KUBE-"):
			jumps = append(jumps, rule{table, append([]string{"-D"}, unquote(string(line))[1:]...)})
		}
	}
	return slices.Concat(jumps, flushes, removals)
}

// unquote splits a line of iptables-save, which quotes comments.
func unquote(line string) []string {
	var fields []string
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			fields = append(fields, part)
			continue
		}
		fields = append(fields, strings.Fields(part)...)
	}
	return fields
}

func removeRules(ctx context.Context, family string, log io.Writer) error {
	rules, err := kubeChains(ctx, family, log)
	errs := []error{err}
	for _, r := range rules {
		errs = append(errs, run.Cmd{Name: family, Args: append([]string{"-w", "-t", r.table}, r.args...), Log: log}.Run(ctx))
	}
	return errors.Join(errs...)
}
