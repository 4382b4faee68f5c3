package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/machine"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	cniBin           = "/opt/cni/bin"
)

// node is a machine of the cluster: one set of namespaces with folders, an
// address and a container runtime of its own.
type node struct {
	Name string
	// Dir holds all that the node writes.
	Dir string
	// Address is the node's, with the length of the network that all nodes and
	// the host share; Gateway is the host's end.
	Address netip.Prefix
	Gateway netip.Addr
	// Pods is the range of the node's pods.
	Pods netip.Prefix
}

// newNode returns the node number i, from 1, in the network that the nodes share.
func newNode(clusterDir string, network netip.Prefix, i int) *node {
	base := network.Addr().As4()
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{base[0], base[1], base[2], byte(n)}) }
	name := nodeName(i)
	return &node{
		Name: name, Dir: filepath.Join(clusterDir, name),
		Address: netip.PrefixFrom(at(1+i), network.Bits()), Gateway: at(1),
		Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88, byte(i), 0}), 24),
	}
}

// nodeName returns the name of the node number i, from 1.
func nodeName(i int) string { return fmt.Sprintf("node%d", i) }

// newNodes returns the nodes of a cluster.
func newNodes(clusterDir string, network netip.Prefix, count int) []*node {
	var nodes []*node
	for i := range count {
		nodes = append(nodes, newNode(clusterDir, network, i+1))
	}
	return nodes
}

func (n *node) path(elem ...string) string {
	return filepath.Join(append([]string{n.Dir}, elem...)...)
}

// mount is a folder or file of ours that the node sees in the place of the host's.
type mount struct{ From, To string }

// settings are kernel settings that the kubelet writes when they have another
// value. They are the whole machine's, so the node sees files in their place.
var settings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// folders are the host's folders that the node has its own of. Their names are
// fixed in the kubelet, in containerd's CNI library and in upstream's script.
func (n *node) folders(cni string) []mount {
	return []mount{
		{n.path("kubelet"), "/var/lib/kubelet"},
		{n.path("pods"), "/var/log/pods"},
		{n.path("containers"), "/var/log/containers"},
		{n.path("cni-state"), "/var/lib/cni"},
		{n.path("volume-plugins"), flexVolumes},
		{cni, cniBin},
		{filepath.Join(filepath.Dir(n.Dir), "shared"), sharedFolder},
	}
}

// sharedFolder is one for all nodes. It stands for the network through which a driver
// copies volumes from node to node.
const sharedFolder = "/var/lib/reference-csi"

// flexVolumes is made by the controller manager, if it is not there.
const flexVolumes = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"

// nodeSpec is what the first process of a node gets to know.
type nodeSpec struct {
	Node node
	// Folders and Files are put over the host's; Files is done after /proc.
	Folders, Files []mount
	// Containerd is the configuration; %SNAPSHOTTER% is filled in on the spot.
	Containerd string
	Bin        string
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
	Programs []program
}

// program is a program that a node runs.
type program struct {
	Args     []string
	Dir, Log string
}

// prepare makes the node's folders and files and returns the spec without its
// programs. all are the nodes of the cluster.
func (n *node) prepare(bin, pauseImage string, all []*node) (*nodeSpec, error) {
	spec := &nodeSpec{Node: *n, Bin: bin, Folders: n.folders(filepath.Join(bin, "cni"))}
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
	files := map[string]string{
		"hosts":                     hosts,
		"resolv.conf":               "",
		"cni-conf/10-node.conflist": cniConfig(n.Pods),
	}
	for name, value := range settings {
		files[filepath.Join("settings", name)] = value + "\n"
		spec.Files = append(spec.Files, mount{n.path("settings", name), filepath.Join("/proc/sys", name)})
	}
	spec.Files = append(spec.Files, mount{n.path("hosts"), "/etc/hosts"})
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(n.path(name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	spec.Containerd = containerdConfig(n, bin, pauseImage)
	return spec, nil
}

// missingFolders returns the folders that have to be made so that dir exists,
// outermost first.
func missingFolders(dir string, exists func(string) bool) []string {
	var missing []string
	for d := dir; !exists(d); d = filepath.Dir(d) {
		missing = append([]string{d}, missing...)
	}
	return missing
}

func pathExists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
