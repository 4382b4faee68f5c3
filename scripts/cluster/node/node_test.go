// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"
	"os"
	"strings"
	"testing"
)

func testNodes(t *testing.T, count int) ([]*Node, []*Spec) {
	t.Helper()
	nodes := NewAll(t.TempDir(), netip.MustParsePrefix("10.59.249.0/24"), count)
	var specs []*Spec
	for _, n := range nodes {
		spec, err := n.Prepare("/bin", "pause", nodes)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return nodes, specs
}

func TestNodesKnowEachOther(t *testing.T) {
	nodes, _ := testNodes(t, 2)
	for _, n := range nodes {
		hosts, err := os.ReadFile(n.Path("hosts"))
		if err != nil || !strings.Contains(string(hosts), "10.59.249.2 node1\n10.59.249.3 node2\n") {
			t.Errorf("%s knows the hosts %q, %v", n.Name, hosts, err)
		}
	}
}
