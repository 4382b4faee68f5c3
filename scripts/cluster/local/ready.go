// SPDX-License-Identifier: Apache-2.0

package local

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

	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// scriptDone is what upstream's script prints when it has started everything.
const scriptDone = "Local Kubernetes cluster is running"

// waitReady waits until the cluster serves, a process of it ends, or ctx does. It
// lets the nodes join that wait for the first one.
func (l *launched) waitReady(ctx context.Context, st *state) error {
	ws := st.ws
	last := errors.New(localUp + " has not started everything")
	joined := false
	for {
		if b, err := os.ReadFile(placesOf(ws).scriptLog()); err == nil && bytes.Contains(b, []byte(scriptDone)) {
			if !joined {
				if err := l.openGates(); err != nil {
					return fmt.Errorf("let the other nodes join: %w%s", err, tailOf(ws))
				}
				joined = true
			}
			if last = errors.Join(st.serves(ctx), st.approveServing(ctx)); last == nil {
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

// serves returns nil when the API server is ready, pods can be created, and the nodes are ready.
func (st *state) serves(ctx context.Context) error {
	if out, err := st.kubectl(ctx, "get", "--raw", "/readyz"); err != nil || out != "ok" {
		return fmt.Errorf("/readyz: %s %w", out, err)
	}
	if _, err := st.kubectl(ctx, "get", "serviceaccount", "default", "-n", "default", "-o", "name"); err != nil {
		return fmt.Errorf("the default service account: %w", err)
	}
	out, err := st.kubectl(ctx, "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
	if err != nil {
		return err
	}
	if n := strings.Count(out, "True"); n < st.Nodes {
		return fmt.Errorf("%d of %s ready", n, countNodes(st.Nodes))
	}
	return nil
}

// servingRequests prints the name and the user of each request of a kubelet for a certificate to serve with.
const servingRequests = `jsonpath={range .items[?(@.spec.signerName=="kubernetes.io/kubelet-serving")]}{.metadata.name} {.spec.username}{"\n"}{end}`

// approveServing approves the requests of all nodes, which nobody does for a
// kubelet by default. Without the certificate, there are no logs of pods. It returns
// an error as long as a node has not asked. Upstream's script must be done: it
// fails if somebody else approves what it waits for.
func (st *state) approveServing(ctx context.Context) error {
	if st.Nodes < 2 {
		return nil
	}
	out, err := st.kubectl(ctx, "get", "certificatesigningrequests", "-o", servingRequests)
	if err != nil {
		return err
	}
	requests, missing := parseServing(out, st.Nodes)
	if len(requests) > 0 { // once more does no harm
		if _, err := st.kubectl(ctx, append([]string{"certificate", "approve"}, requests...)...); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no certificate to serve with: %s", strings.Join(missing, ", "))
	}
	return nil
}

// parseServing returns the names of the requests, and the nodes without any.
func parseServing(out string, nodes int) (requests, missing []string) {
	asked := map[string]bool{}
	for line := range strings.Lines(out) {
		if name, user, ok := strings.Cut(strings.TrimSpace(line), " system:node:"); ok {
			requests, asked[user] = append(requests, name), true
		}
	}
	for i := range nodes {
		if name := node.Name(i + 1); !asked[name] {
			missing = append(missing, name)
		}
	}
	return requests, missing
}

// kubectl runs the built kubectl on the cluster.
func (st *state) kubectl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	s := st.status()
	out, err := run.Cmd{Name: s.Kubectl(), Args: append([]string{"--request-timeout=10s"}, args...), Env: s.Env()}.Output(ctx)
	return string(out), err
}
