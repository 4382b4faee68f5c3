// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/workspace"
)

// places are the cluster's own folders, below the workspace's cluster folder.
type places struct{ dir string }

func placesOf(ws workspace.Workspace) places { return places{ws.Cluster()} }

func (p places) logs() string       { return filepath.Join(p.dir, "logs") }
func (p places) certs() string      { return filepath.Join(p.dir, "certs") }
func (p places) etcd() string       { return filepath.Join(p.dir, "etcd") }
func (p places) tmp() string        { return filepath.Join(p.dir, "tmp") }
func (p places) home() string       { return filepath.Join(p.dir, "home") }
func (p places) images() string     { return filepath.Join(p.dir, "images") }
func (p places) config() string     { return filepath.Join(p.dir, "config") }
func (p places) programs() string   { return filepath.Join(p.dir, "programs") }
func (p places) shared() string     { return filepath.Join(p.dir, "shared") }
func (p places) kubeconfig() string { return filepath.Join(p.certs(), "admin.kubeconfig") }
func (p places) scriptLog() string  { return p.log("local-up-cluster") }

// kubectlCache is where kubectl may keep what it learns of the cluster, which would be stale in the
// user's home after the next one.
func (p places) kubectlCache() string { return filepath.Join(p.home(), "kubectl") }

// log is that of a program.
func (p places) log(name string) string { return filepath.Join(p.logs(), name+".log") }

// make makes the folders, and the programs. Only the logs stay after the cluster.
func (p places) make() error {
	for _, d := range []string{p.logs(), p.certs(), p.etcd(), p.tmp(), p.home(), p.images(), p.programs()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(p.programs(), name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// programs are what upstream's script finds before the machine's own.
var programs = map[string]string{
	// The script calls it even where it is root or needs no root, and takes a failing one for
	// dead components.
	"sudo": `while :; do case "$1" in -*) shift ;; *) break ;; esac; done; exec "$@"`,
	// Where grep has read enough before echo has written all, the script takes sed for another
	// sed (pipefail), and ends unless it finds this one.
	"gsed": `exec sed "$@"`,
}

// passedOn are upstream's variables that a user may set for the script.
var passedOn = []string{"KUBE_VERBOSE", "LOG_LEVEL", "LOG_SPEC", "RUNTIME_CONFIG", "EMULATED_VERSION", "WAIT_FOR_URL_API_SERVER"}

// Environment says which environment variables a cluster takes, and the ports that it has
// without them.
func Environment() string {
	var ports []string
	for _, p := range hostPorts {
		ports = append(ports, fmt.Sprintf("%s (%d)", p.Variable, p.Number))
	}
	return "Upstream's script gets these environment variables: " + strings.Join(passedOn, ", ") +
		".\nWhere the cluster shares the host's network, these set its ports: " + strings.Join(ports, ", ") + "."
}

// script is one run of hack/local-up-cluster.sh.
type script struct {
	ws      workspace.Workspace
	options Options
	mode    Mode
	ports   []port
	mark    string
	// node is the node whose kubelet runs; nil without one.
	node *node.Node
	// cgroupRoot is the control group below which the pods' groups are.
	cgroupRoot string
	// defaultRoute says whether the host has one.
	defaultRoute bool
}

// localUp is upstream's script, in the tree.
const localUp = "hack/local-up-cluster.sh"

// program is the script as a program to run.
func (s script) program() node.Program {
	return node.Program{Args: []string{"bash", localUp, "-o", s.options.Components}, Dir: s.ws.Tree(), Log: placesOf(s.ws).scriptLog()}
}

// commonEnv is the environment of the script and of all that it would start: what
// the user's shell happens to have must not decide what runs.
func (s script) commonEnv() map[string]string {
	p := placesOf(s.ws)
	path := []string{p.programs(), s.ws.Bin(), s.options.Components, os.Getenv("PATH")}
	if os.Geteuid() == 0 {
		path = append(path, "/usr/local/sbin", "/usr/sbin", "/sbin") // iptables
	}
	return map[string]string{
		"PATH": strings.Join(path, string(filepath.ListSeparator)),
		"HOME": p.home(), "TERM": "dumb", "LC_ALL": "C", "USER": userName(),
		// Everything temporary stays in the cluster's folder.
		"TMPDIR":             p.tmp(),
		machine.MarkVariable: s.mark,
	}
}

// env is the script's whole environment.
func (s script) env() []string {
	p := placesOf(s.ws)
	env := s.commonEnv()
	maps.Copy(env, map[string]string{
		"TMP_DIR":  p.config(),
		"CERT_DIR": p.certs(), "LOG_DIR": p.logs(), "ETCD_DIR": p.etcd(),
		"FEATURE_GATES": s.options.Gates, "ALLOW_PRIVILEGED": "true",
		// No image of a name server is there.
		"KUBE_ENABLE_CLUSTER_DNS": "false",
		"CONTROLPLANE_SUDO":       "", "KUBELET_SUDO": "", "PROXY_SUDO": "",
	})
	for _, v := range passedOn {
		if val := os.Getenv(v); val != "" {
			env[v] = val
		}
	}
	for _, p := range s.ports {
		env[p.Variable] = strconv.Itoa(p.Number)
	}
	if s.mode == ModeControlPlane {
		env["START_MODE"] = "nokubelet,nokubeproxy"
		env["API_HOST"], env["API_HOST_IP"], env["API_BIND_ADDR"] = "127.0.0.1", "127.0.0.1", "127.0.0.1"
		if !s.defaultRoute {
			// Nobody uses the address without a node, but the server wants one.
			env["ADVERTISE_ADDRESS"] = "203.0.113.1"
		}
		return list(env)
	}
	address := s.node.Address.Addr().String()
	maps.Copy(env, map[string]string{
		"START_MODE": "all", "API_HOST": address, "API_HOST_IP": address, "KUBELET_HOST": address, "HOSTNAME_OVERRIDE": s.node.Name,
		"CONTAINER_RUNTIME_ENDPOINT": "unix://" + node.ContainerdSocket,
		"CGROUP_DRIVER":              "cgroupfs", "CGROUP_ROOT": s.cgroupRoot,
		"KUBE_PROXY_MODE": "iptables", "KUBELET_RESOLV_CONF": s.node.Path("resolv.conf"),
		"POD_MANIFEST_PATH": filepath.Join(p.dir, "static-pods"),
		// Absolute: a percentage of a large, well-filled disk evicts pods for nothing.
		"EVICTION_HARD": "memory.available<100Mi,nodefs.available<1Gi,nodefs.inodesFree<1%",
		"KUBELET_FLAGS": strings.Join(append(kubeletFlags(filepath.Join(p.dir, "volume-plugins")), "--node-ip="+address), " "),
	})
	return list(env)
}

// list returns an environment as programs get it.
func list(env map[string]string) []string {
	var list []string
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

// kubeletFlags are those of all kubelets.
func kubeletFlags(volumePlugins string) []string {
	return []string{
		// An image that is collected cannot be pulled again.
		"--image-gc-high-threshold=100",
		"--volume-plugin-dir=" + volumePlugins,
		// The machine may have the old control groups.
		"--fail-cgroupv1=false",
	}
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}
