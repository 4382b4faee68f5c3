// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/cluster/machine"
)

// Spec is what the first process of a node gets to know.
type Spec struct {
	Node Node
	// Folders and Files are put over the host's; Files is done after /proc.
	Folders, Files []Mount
	// Bin has the programs, Pause is the image of each pod's first container.
	Bin, Pause string
	// Images are tarballs to import.
	Images []string
	// Log takes what the first process says, ContainerdLog what containerd does.
	Log, ContainerdLog string
	// Ports are the names of the links that lead to other nodes.
	Ports []string
	// Routes lead to the pods of other nodes.
	Routes []machine.Route
	// Joins is set for a node that waits for the first one before its programs
	// start. The node ends with the first of them.
	Joins    bool
	Env      []string
	Programs []Program
}

// Program is a program that a node runs.
type Program struct {
	Args     []string
	Dir, Log string
	// Restarts is that it is started again when it ends: kube-proxy ends when its Node object
	// is deleted, and a kubelet has to be restarted to make a new one.
	Restarts bool
}

// Prepare makes the node's folders and files and returns the spec without its
// programs. all are the nodes of the cluster.
func (n *Node) Prepare(bin, pause string, all []*Node) (*Spec, error) {
	spec := &Spec{Node: *n, Bin: bin, Pause: pause, Folders: n.folders(filepath.Join(bin, "cni"))}
	for _, m := range spec.Folders {
		if err := os.MkdirAll(m.From, 0o755); err != nil {
			return nil, err
		}
	}
	hosts := "127.0.0.1 localhost\n::1 localhost\n"
	for i, other := range all {
		hosts += fmt.Sprintf("%s %s\n", other.Address.Addr(), other.Name)
		if other == n {
			continue
		}
		spec.Routes = append(spec.Routes, machine.Route{To: other.Pods, Via: other.Address.Addr()})
		if n == all[0] {
			spec.Ports = append(spec.Ports, all[i].Name)
		}
	}
	// The reference driver offers nothing in a folder that does not say whose it is.
	if err := os.WriteFile(filepath.Join(n.own(), "owner"), []byte(n.Name+"\n"), 0o644); err != nil {
		return nil, err
	}
	files := map[string]string{"hosts": hosts, "resolv.conf": ""}
	for name, value := range settings {
		files[filepath.Join("settings", name)] = value + "\n"
		spec.Files = append(spec.Files, Mount{n.Path("settings", name), filepath.Join("/proc/sys", name)})
	}
	spec.Files = append(spec.Files, Mount{n.Path("hosts"), "/etc/hosts"})
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(n.Path(name)), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(n.Path(name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(n.Path("cni-conf"), 0o755); err != nil {
		return nil, err
	}
	return spec, spec.writeConfig("pods.conflist", "", "cni-conf/10-node.conflist")
}
