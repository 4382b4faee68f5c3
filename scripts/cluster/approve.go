package cluster

import (
	"context"
	"fmt"
	"strings"

	"capacityv2.internal/scripts/node"
)

// servingRequests prints, for each request of a kubelet for a certificate to serve
// with, its name, its user, and "yes" if it was approved.
const servingRequests = `{range .items[?(@.spec.signerName=="kubernetes.io/kubelet-serving")]}` +
	`{.metadata.name} {.spec.username} {range .status.conditions[?(@.type=="Approved")]}yes{end}{"\n"}{end}`

// approveServing approves the requests of all nodes, which nobody does for a
// kubelet by default. Without the certificate, there are no logs of pods. It returns
// an error as long as a node has not asked. Upstream's script must be done: it
// fails if somebody else approves what it waits for.
func approveServing(ctx context.Context, st *state) error {
	if st.Nodes < 2 {
		return nil
	}
	out, err := kubectl(ctx, st, "get", "certificatesigningrequests", "-o", "jsonpath="+servingRequests)
	if err != nil {
		return err
	}
	pending, missing := parseServing(string(out), st.Nodes)
	if len(pending) > 0 {
		if _, err := kubectl(ctx, st, append([]string{"certificate", "approve"}, pending...)...); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no certificate to serve with: %s", strings.Join(missing, ", "))
	}
	return nil
}

// parseServing returns the requests that wait for approval, and the nodes without
// any request.
func parseServing(requests string, nodes int) (pending, missing []string) {
	asked := map[string]bool{}
	for line := range strings.Lines(requests) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		asked[strings.TrimPrefix(f[1], "system:node:")] = true
		if len(f) == 2 {
			pending = append(pending, f[0])
		}
	}
	for i := range nodes {
		if name := node.Name(i + 1); !asked[name] {
			missing = append(missing, name)
		}
	}
	return pending, missing
}
