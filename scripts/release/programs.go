package release

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
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

// target returns the package of the program name, relative to the tree.
func target(name string) (string, error) {
	for _, t := range slices.Concat(serverTargets, clientTargets) {
		if path.Base(t) == name {
			return "./" + t, nil
		}
	}
	return "", fmt.Errorf("%s is not a program of a Kubernetes release", name)
}

// names returns the sorted program names of targets.
func names(targets ...[]string) []string {
	var out []string
	for _, t := range slices.Concat(targets...) {
		out = append(out, path.Base(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
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
			return progress.Refuse(fmt.Sprintf("scripts/release/programs.go lists the %s programs %v", f[0], got),
				fmt.Sprintf("those of the tree's hack/lib/golang.sh: %v", want), "edit the list in programs.go")
		}
		delete(ours, f[0])
	}
	if len(ours) != 0 {
		return fmt.Errorf("upstream's list of programs: the tree's hack/lib/golang.sh printed %q", out)
	}
	return nil
}

// Platform is an operating system and an architecture, in Go's names.
type Platform struct{ OS, Arch string }

// supported says for which systems upstream releases what: servers and nodes
// on Linux only (we leave out Windows nodes), clients on all.
var supported = map[string][]string{
	"linux":   {"amd64", "arm64", "ppc64le", "s390x"},
	"darwin":  {"amd64", "arm64"},
	"windows": {"amd64", "arm64"},
}

// ParsePlatforms reads a list such as "linux/amd64,linux/arm64". An empty list
// means Linux on this machine's architecture, and this machine's system too.
func ParsePlatforms(list string) ([]Platform, error) {
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if len(fields) == 0 {
		fields = []string{"linux/" + runtime.GOARCH, runtime.GOOS + "/" + runtime.GOARCH}
	}
	var out []Platform
	for _, f := range fields {
		os, arch, _ := strings.Cut(f, "/")
		if !slices.Contains(supported[os], arch) {
			return nil, progress.Refuse("unknown platform "+f, "one or more of "+strings.Join(allPlatforms(), ", "), "make release PLATFORMS=linux/amd64,linux/arm64")
		}
		out = append(out, Platform{os, arch})
	}
	slices.SortFunc(out, func(a, b Platform) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}

func allPlatforms() []string {
	var out []string
	for os, archs := range supported {
		for _, a := range archs {
			out = append(out, os+"/"+a)
		}
	}
	slices.Sort(out)
	return out
}

// Host is the platform of this machine.
func Host() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// tag is the platform in upstream's file names: linux-amd64.
func (p Platform) tag() string { return p.OS + "-" + p.Arch }

// programs returns what is built for p.
func (p Platform) programs() []string {
	if p.OS == "linux" {
		return names(serverTargets, clientTargets)
	}
	return names(clientTargets)
}

// file is the file name of a program for p.
func (p Platform) file(program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}
