// SPDX-License-Identifier: Apache-2.0

// Package node is a machine of a local cluster: namespaces with folders, an address and a
// container runtime of its own, and the images that it begins with.
package node

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// StartSignal is the word that a process waits for before it does what has to be recorded,
// or prepared, first.
const StartSignal = "go\n"

const (
	ContainerdSocket = "/run/containerd/containerd.sock"
	CNIBin           = "/opt/cni/bin"
)

// Node is a machine of the cluster: one set of namespaces with folders, an
// address and a container runtime of its own.
type Node struct {
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

// New returns the node number i, from 1, in the network that the nodes share.
func New(clusterDir string, network netip.Prefix, i int) *Node {
	base := network.Addr().As4()
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{base[0], base[1], base[2], byte(n)}) }
	name := Name(i)
	return &Node{
		Name: name, Dir: filepath.Join(clusterDir, name),
		Address: netip.PrefixFrom(at(1+i), network.Bits()), Gateway: at(1),
		Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88, byte(i), 0}), 24),
	}
}

// Name returns the name of the node number i, from 1.
func Name(i int) string { return fmt.Sprintf("node%d", i) }

// NewAll returns the nodes of a cluster.
func NewAll(clusterDir string, network netip.Prefix, count int) []*Node {
	var nodes []*Node
	for i := range count {
		nodes = append(nodes, New(clusterDir, network, i+1))
	}
	return nodes
}

func (n *Node) Path(elem ...string) string {
	return filepath.Join(append([]string{n.Dir}, elem...)...)
}

// Mount is a folder or file of ours that the node sees in the place of the host's.
type Mount struct{ From, To string }

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
func (n *Node) folders(cni string) []Mount {
	return []Mount{
		{n.Path("kubelet"), "/var/lib/kubelet"},
		{n.Path("pods"), "/var/log/pods"},
		{n.Path("containers"), "/var/log/containers"},
		{n.Path("cni-state"), "/var/lib/cni"},
		{n.Path("volume-plugins"), FlexVolumes},
		{cni, CNIBin},
		{n.own(), driverFolder + "/own"},
		{filepath.Dir(n.own()), driverFolder + "/nodes"},
	}
}

// own is the folder of the node in which the reference driver writes.
func (n *Node) own() string { return filepath.Join(filepath.Dir(n.Dir), "shared", n.Name) }

// driverFolder has the folder of the node in which the reference driver writes, and those of all nodes, from which it
// reads: that stands for the network through which a driver copies volumes from node to node.
const driverFolder = "/var/lib/reference-csi"

// FlexVolumes is made by the controller manager, if it is not there.
const FlexVolumes = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"
