// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// Upstream's targets (hack/lib/golang.sh). [checkTargets] compares them with
// the tree, so that a new base with other targets is noticed.
var (
	clientTargets = []string{"cmd/kubectl", "cmd/kubectl-convert"}
	nodeTargets   = []string{
		"cmd/kube-proxy", "cmd/kubeadm", "cmd/kubelet",
		"staging/src/k8s.io/component-base/logs/kube-log-runner",
	}
	serverTargets = []string{
		"cmd/kube-proxy", "cmd/kube-apiserver", "cmd/kube-controller-manager", "cmd/kubelet", "cmd/kubeadm", "cmd/kube-scheduler",
		"staging/src/k8s.io/component-base/logs/kube-log-runner", "staging/src/k8s.io/kube-aggregator",
		"staging/src/k8s.io/apiextensions-apiserver", "cluster/gce/gci/mounter",
	}
)

// kubernetes has upstream's tarballs (build/lib/release.sh).
var kubernetes = product{
	check:     checkTargets,
	variables: kubernetesVariables,
	archives: []bundle{
		{name: "kubernetes-client", top: "kubernetes", bin: "client/bin", packages: clientTargets},
		{name: "kubernetes-node", top: "kubernetes", bin: "node/bin", packages: slices.Concat(nodeTargets, clientTargets), full: true},
		{
			name: "kubernetes-server", top: "kubernetes", bin: "server/bin", packages: slices.Concat(serverTargets, clientTargets), full: true,
			folders: []string{"addons"}, images: kubernetesImages(),
		},
	},
}

// logRunner starts a program in its image and sends its output where flags say.
const logRunner = "kube-log-runner"

// kubernetesImages are upstream's, under the names by which kubeadm asks for them.
func kubernetesImages() []imageSource {
	server := func(program, capability string) imageSource {
		return imageSource{
			program: program, repository: imageRegistry + "/" + program, capability: capability,
			files: map[string]string{"usr/local/bin/" + program: program, "go-runner": logRunner}, entrypoint: "/go-runner",
		}
	}
	return []imageSource{
		server("kube-apiserver", netBindService), server("kube-controller-manager", ""), server("kube-scheduler", ""),
		{program: "kubectl", repository: imageRegistry + "/kubectl", files: map[string]string{"bin/kubectl": "kubectl"}, entrypoint: "/bin/kubectl"},
	}
}

// checkKubeadm asks the built kubeadm for the images of v, and refuses a release that lacks one
// with that tag. It returns the others, which are upstream's.
func checkKubeadm(ctx context.Context, kubeadm string, v Version, images map[string]string, log io.Writer) (upstream []string, err error) {
	out, err := run.Cmd{Log: log, Name: kubeadm, Args: []string{"config", "images", "list", "--kubernetes-version", v.String()}}.Output(ctx)
	if err != nil {
		return nil, err
	}
	for _, image := range strings.Fields(string(out)) {
		repository, ours := strings.CutSuffix(image, ":"+v.ImageTag())
		switch {
		case images[image] != "":
		case !ours:
			upstream = append(upstream, image)
		case path.Base(repository) == "kube-proxy": // the series leaves it as it is
			upstream = append(upstream, repository+":"+v.Base)
		default:
			return nil, run.Refuse("kubeadm asks for "+image, "an image of the release with that name", "edit scripts/build/release/kubernetes.go")
		}
	}
	if len(upstream) == 0 {
		return nil, run.Refuse("kubeadm config images list printed "+string(out), "upstream's images, too", "see its log")
	}
	return upstream, nil
}

// checkTargets compares our lists with those of the tree's own build scripts.
func checkTargets(ctx context.Context, tree string) error {
	const script = `KUBE_ROOT=$PWD; source hack/lib/init.sh >/dev/null
echo "client ${KUBE_CLIENT_TARGETS[*]}"; echo "node ${KUBE_NODE_TARGETS[*]}"; echo "server ${KUBE_SERVER_TARGETS[*]}"`
	out, err := run.Cmd{Dir: tree, Name: "bash", Args: []string{"-c", script}}.Output(ctx)
	if err != nil {
		return fmt.Errorf("upstream's list of programs: %w", err)
	}
	ours := map[string][]string{"client": clientTargets, "node": nodeTargets, "server": serverTargets}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		want := slices.Sorted(slices.Values(f[1:]))
		if got := slices.Sorted(slices.Values(ours[f[0]])); !slices.Equal(got, want) {
			return run.Refuse(fmt.Sprintf("scripts/build/release/kubernetes.go lists the %s programs %v", f[0], got),
				fmt.Sprintf("those of the tree's hack/lib/golang.sh: %v", want), "edit the list in kubernetes.go")
		}
		delete(ours, f[0])
	}
	if len(ours) != 0 {
		return fmt.Errorf("upstream's list of programs: the tree's hack/lib/golang.sh printed %q", out)
	}
	return nil
}

// kubernetesVariables are those that upstream's hack/lib/version.sh sets.
func kubernetesVariables(s Stamp) []string {
	state := "clean"
	if len(s.Dirty) > 0 {
		state = "dirty"
	}
	major, minor := s.Version.majorMinor()
	var out []string
	for _, kv := range [][2]string{
		{"buildDate", s.Date.Format("2006-01-02T15:04:05Z")},
		{"gitCommit", s.Commit},
		{"gitTreeState", state},
		{"gitVersion", s.GitVersion()},
		{"gitMajor", major},
		{"gitMinor", minor},
	} {
		for _, p := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
			out = append(out, p+"."+kv[0]+"="+kv[1])
		}
	}
	return out
}
