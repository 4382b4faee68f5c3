package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// tool is a set of programs of one module, pinned in scripts/pins.
type tool struct {
	pin string
	// programs maps a file below the folder for tools to its package.
	programs map[string]string
	tags     string
	ldflags  string
	env      []string
}

const (
	containerdCmd = "github.com/containerd/containerd/v2/cmd/"
	cniPlugins    = "github.com/containernetworking/plugins/plugins/"
)

// etcdTool serves the cluster and the integration tests.
var etcdTool = tool{pin: "etcd", programs: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"}, tags: toolchain.Tags}

// cfsslTool makes the cluster's certificates; without it upstream's script would
// download one.
var cfsslTool = tool{pin: "cfssl", programs: map[string]string{
	"cfssl":     "github.com/cloudflare/cfssl/cmd/cfssl",
	"cfssljson": "github.com/cloudflare/cfssl/cmd/cfssljson",
}}

// nodeTools are the container runtime and the network of a full node.
var nodeTools = []tool{
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

func toolsOf(m Mode) []tool {
	ts := []tool{etcdTool, cfsslTool}
	if m == ModeFull {
		ts = append(ts, nodeTools...)
	}
	return ts
}

// Tools builds the programs that the plan's mode needs, into the workspace's
// folder for tools, unless they were built from the same pins.
func Tools(ctx context.Context, ws workspace.Workspace, p *Plan, r *progress.Reporter) error {
	return r.Step(ctx, "tools of the cluster", func(ctx context.Context, s *progress.Step) error {
		for _, t := range toolsOf(p.Mode) {
			if err := t.build(ctx, ws, s.Log, s.Sayf); err != nil {
				return err
			}
		}
		return nil
	})
}

// Etcd builds the pinned etcd alone, for tests, and returns its folder.
func Etcd(ctx context.Context, ws workspace.Workspace, log io.Writer) (string, error) {
	return ws.Bin(), etcdTool.build(ctx, ws, log, func(string, ...any) {})
}

func (t tool) build(ctx context.Context, ws workspace.Workspace, log io.Writer, sayf func(string, ...any)) error {
	stamp, err := t.stamp(ws.Pin(t.pin))
	if err != nil {
		return err
	}
	stampFile := filepath.Join(ws.Bin(), ".stamps", t.pin)
	if old, err := os.ReadFile(stampFile); err == nil && string(old) == stamp && t.present(ws.Bin()) {
		return nil
	}
	sayf("building %s", t.pin)
	for file, pkg := range t.programs {
		out := filepath.Join(ws.Bin(), filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		args := []string{"build", "-mod=readonly"}
		if t.tags != "" {
			args = append(args, "-tags", t.tags)
		}
		args = append(args, "-ldflags", strings.TrimSpace("-s -w "+t.ldflags), "-o", out, pkg)
		if err := toolchain.GoEnv(ctx, ws.Pin(t.pin), append([]string{"GOWORK=off"}, t.env...), log, args...); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(stampFile), 0o755); err != nil {
		return err
	}
	return os.WriteFile(stampFile, []byte(stamp), 0o644)
}

// stamp stands for all that decides the programs' content.
func (t tool) stamp(dir string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, t.programs, t.tags, t.ldflags, t.env, toolchain.Env())
	for _, f := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return "", fmt.Errorf("pin %s: %w", t.pin, err)
		}
		fmt.Fprintf(h, "%s %d\n%s", f, len(b), b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (t tool) present(bin string) bool {
	for file := range t.programs {
		if _, err := os.Stat(filepath.Join(bin, filepath.FromSlash(file))); err != nil {
			return false
		}
	}
	return true
}
