package node

import (
	"fmt"
	"net/netip"
)

// snapshotterMark is replaced when the node knows what its file system can do.
const snapshotterMark = "%SNAPSHOTTER%"

// containerdConfig is the configuration of a node's containerd 2.
//
// restrict_oom_score_adj: without CAP_SYS_RESOURCE runc fails otherwise.
// disable_apparmor: a profile is loaded into the whole machine's kernel.
// The hugetlb settings: the old control groups may lack that controller.
func containerdConfig(n *Node, bin, pauseImage string) string {
	return fmt.Sprintf(`version = 4
root = %q
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp"]

[plugins."io.containerd.server.v1.grpc"]
  address = %q

[plugins."io.containerd.internal.v1.opt"]
  path = %q

[plugins."io.containerd.cri.v1.images"]
  snapshotter = %q
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = %q
        SystemdCgroup = false
`, n.Path("containerd"), ContainerdSocket, n.Path("containerd", "opt"), snapshotterMark, pauseImage, CNIBin, n.Path("cni-conf"), bin+"/runc")
}

// cniConfig is the pod network: a pair of links for each pod and one range for
// the node, as upstream's script would write it.
func cniConfig(pods netip.Prefix) string {
	return fmt.Sprintf(`{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": true,
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}, "externalSetMarkChain": "KUBE-MARK-MASQ"}
  ]
}
`, pods)
}
