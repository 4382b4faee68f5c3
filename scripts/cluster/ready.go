package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// scriptDone is what upstream's script prints when it has started everything.
const scriptDone = "Local Kubernetes cluster is running"

// waitReady waits until the cluster serves, a process of it ends, or ctx does. It
// lets the nodes join that wait for the first one.
func waitReady(ctx context.Context, ws workspace.Workspace, st *state, l *launched) error {
	last := errors.New(localUp + " has not started everything")
	told := false
	for {
		if b, err := os.ReadFile(placesOf(ws).scriptLog()); err == nil && bytes.Contains(b, []byte(scriptDone)) {
			if !told {
				if err := l.tell(); err != nil {
					return fmt.Errorf("let the other nodes join: %w%s", err, tailOf(ws))
				}
				told = true
			}
			if last = errors.Join(ready(ctx, st), approveServing(ctx, st)); last == nil {
				return nil
			}
		}
		if err := componentFailed(ws); err != nil {
			return fmt.Errorf("%w%s", err, tailOf(ws))
		}
		select {
		case err := <-l.ended:
			return fmt.Errorf("%w%s", err, tailOf(ws))
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
	logs, err := filepath.Glob(filepath.Join(placesOf(ws).logs(), "*.log"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		b, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if _, reason, ok := strings.Cut(string(b), commandFailed); ok {
			reason, _, _ = strings.Cut(reason, "\n")
			return fmt.Errorf("%s cannot start: %.500s", strings.TrimSuffix(filepath.Base(log), ".log"), reason)
		}
	}
	return nil
}

// tailOf returns the last lines of the logs that tell why a cluster does not come
// up.
func tailOf(ws workspace.Workspace) string {
	p := placesOf(ws)
	var s strings.Builder
	// Of each node there is what its first process says, and what its kubelet does.
	files, _ := filepath.Glob(filepath.Join(p.logs(), "node?.log"))
	kubelets, _ := filepath.Glob(filepath.Join(p.logs(), "*kubelet.log"))
	for _, f := range slices.Concat(files, []string{p.scriptLog(), filepath.Join(p.logs(), "kube-apiserver.log")}, kubelets) {
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
// nodes are ready.
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
	for _, p := range st.Processes {
		if !p.Alive() {
			return fmt.Errorf("%s has ended", p.Name)
		}
	}
	out, err := kubectl(ctx, st, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	if err != nil {
		return err
	}
	if n := strings.Count(string(out), "True"); n < st.Nodes {
		return fmt.Errorf("%d of %s ready", n, countNodes(st.Nodes))
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
