package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// scriptDone is what upstream's script prints when it has started everything.
const scriptDone = "Local Kubernetes cluster is running"

// waitReady waits until the cluster serves, its process ends, or ctx does.
func waitReady(ctx context.Context, ws workspace.Workspace, st *state, ended <-chan error) error {
	last := errors.New("hack/local-up-cluster.sh has not started everything")
	for {
		if b, err := os.ReadFile(placesOf(ws).scriptLog()); err == nil && bytes.Contains(b, []byte(scriptDone)) {
			if last = ready(ctx, st); last == nil {
				return nil
			}
		}
		if err := componentFailed(ws); err != nil {
			return fmt.Errorf("%w%s", err, tailOf(ws))
		}
		select {
		case err := <-ended:
			return fmt.Errorf("hack/local-up-cluster.sh ended before the cluster was ready (%v)%s", err, tailOf(ws))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err() // the user's wish, no failure to explain
			}
			return fmt.Errorf("%w: %w%s", context.Cause(ctx), last, tailOf(ws))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// commandFailed is the last word of every component that cannot start.
const commandFailed = `"command failed" err=`

// componentFailed returns an error when a component has given up. Upstream's
// script waits a minute for it all the same.
func componentFailed(ws workspace.Workspace) error {
	for _, c := range Components() {
		b, err := os.ReadFile(filepath.Join(placesOf(ws).logs(), c+".log"))
		if err != nil {
			continue // not started yet, or not in this mode
		}
		if _, reason, ok := strings.Cut(string(b), commandFailed); ok {
			reason, _, _ = strings.Cut(reason, "\n")
			return fmt.Errorf("%s cannot start: %.500s", c, reason)
		}
	}
	return nil
}

// tailOf returns the last lines of the logs that tell why a cluster does not come
// up.
func tailOf(ws workspace.Workspace) string {
	p := placesOf(ws)
	var s strings.Builder
	for _, f := range []string{p.nodeLog("node1"), p.scriptLog(), filepath.Join(p.logs(), "kube-apiserver.log"), filepath.Join(p.logs(), "kubelet.log")} {
		b, err := os.ReadFile(f)
		if err != nil || len(b) == 0 {
			continue
		}
		fmt.Fprintf(&s, "\n  %s ends with:", f)
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		for _, l := range lines[max(0, len(lines)-4):] {
			fmt.Fprintf(&s, "\n    %.300s", l)
		}
	}
	return s.String()
}

// ready returns nil when the API server is ready, pods can be created, and the
// node, where there is one, is ready.
func ready(ctx context.Context, st *state) error {
	if out, err := kubectl(ctx, st, "get", "--raw", "/readyz"); err != nil || string(out) != "ok" {
		return fmt.Errorf("/readyz: %s %w", out, err)
	}
	if _, err := kubectl(ctx, st, "get", "serviceaccount", "default", "-n", "default", "-o", "name"); err != nil {
		return fmt.Errorf("the default service account: %w", err)
	}
	if !st.Mode.HasNode() {
		return nil
	}
	out, err := kubectl(ctx, st, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	if err != nil {
		return err
	}
	if string(out) != "True" {
		return fmt.Errorf("the node is not ready: %q", out)
	}
	return nil
}

// kubectl runs the built kubectl on the cluster. Its cache stays in the
// cluster's folder.
func kubectl(ctx context.Context, st *state, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return run.Cmd{
		Name: filepath.Join(st.Components, "kubectl"),
		Args: append([]string{"--kubeconfig", st.Kubeconfig, "--request-timeout=10s"}, args...),
		// The cluster is on this machine, whatever proxy the user has.
		Env: []string{"KUBECACHEDIR=" + cacheOf(st), "NO_PROXY=*", "no_proxy=*"},
	}.Output(ctx)
}

// cacheOf is where kubectl may keep what it learns of the cluster, which would
// be stale in the user's home after the next one.
func cacheOf(st *state) string {
	return filepath.Join(filepath.Dir(filepath.Dir(st.Kubeconfig)), "home", "kubectl")
}
