package tools

import "capacityv2.internal/scripts/toolchain"

const (
	containerdCmd = "github.com/containerd/containerd/v2/cmd/"
	cniPlugins    = "github.com/containernetworking/plugins/plugins/"
)

// Etcd serves the cluster, the integration tests and code generation.
var Etcd = Tool{pin: "etcd", programs: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"}, tags: toolchain.Tags}

// Certificates makes those of the cluster; without it upstream's script would download
// one.
var Certificates = Tool{pin: "cfssl", programs: map[string]string{
	"cfssl":     "github.com/cloudflare/cfssl/cmd/cfssl",
	"cfssljson": "github.com/cloudflare/cfssl/cmd/cfssljson",
}}

// Node are the container runtime and the network of a node.
var Node = []Tool{
	{pin: "containerd", programs: map[string]string{
		"containerd":              containerdCmd + "containerd",
		"containerd-shim-runc-v2": containerdCmd + "containerd-shim-runc-v2",
		"ctr":                     containerdCmd + "ctr",
	}, tags: "no_btrfs,no_devmapper,no_zfs,netgo,osusergo,static_build"},
	// The one tool that needs C: seccomp, without which no ordinary pod starts.
	{pin: "runc", programs: map[string]string{"runc": "github.com/opencontainers/runc"},
		tags: "netgo,osusergo,seccomp", ldflags: "-extldflags -static", env: []string{"CGO_ENABLED=1"}},
	{pin: "cni", programs: map[string]string{
		"cni/bridge":     cniPlugins + "main/bridge",
		"cni/ptp":        cniPlugins + "main/ptp",
		"cni/loopback":   cniPlugins + "main/loopback",
		"cni/host-local": cniPlugins + "ipam/host-local",
		"cni/portmap":    cniPlugins + "meta/portmap",
	}},
}

// Specs are what the end-to-end specs need beside a cluster: the program that runs
// them side by side, and a sidecar that upstream's mock driver asks for.
var Specs = []Tool{
	{pin: "ginkgo", programs: map[string]string{"ginkgo": "github.com/onsi/ginkgo/v2/ginkgo"}},
	{pin: "external-attacher", programs: map[string]string{"csi-attacher": "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"}, tags: toolchain.Tags},
}
