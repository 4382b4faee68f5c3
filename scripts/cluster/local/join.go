// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/cluster/node"
)

// joiningPrograms are those of a node beside the first. They have the first
// node's configuration, with what is the node's own as flags. The kubelet gets its
// certificates from the control plane, as the first one's does.
func (s script) joiningPrograms(n *node.Node, cgroupRoot string) []node.Program {
	p := placesOf(s.ws)
	address := n.Address.Addr().String()
	verbosity := "--v=" + cmp.Or(os.Getenv("LOG_LEVEL"), "3")
	kubelet := append([]string{
		filepath.Join(s.options.Components, "kubelet"), verbosity,
		"--config=" + filepath.Join(p.config(), "kubelet.yaml"),
		"--bootstrap-kubeconfig=" + p.kubeconfig(),
		"--kubeconfig=" + n.Path("kubelet.kubeconfig"),
		"--hostname-override=" + n.Name,
		"--node-ip=" + address,
		"--address=" + address,
		"--healthz-bind-address=" + address,
		"--cgroup-root=" + cgroupRoot,
		"--pod-manifest-path=", // static pods are the first node's
		"--resolv-conf=" + n.Path("resolv.conf"),
	}, kubeletFlags(n.Path("volume-plugins"))...)
	proxy := []string{
		filepath.Join(s.options.Components, "kube-proxy"), verbosity,
		"--config=" + filepath.Join(p.config(), "kube-proxy.yaml"),
		"--hostname-override=" + n.Name,
	}
	return []node.Program{
		{Args: kubelet, Dir: n.Dir, Log: p.log(n.Name + "-kubelet"), Restarts: true},
		{Args: proxy, Dir: n.Dir, Log: p.log(n.Name + "-kube-proxy"), Restarts: true},
	}
}
