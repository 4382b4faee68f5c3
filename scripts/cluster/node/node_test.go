// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"
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

func TestNodesHaveAddressesOfTheirOwn(t *testing.T) {
	network := netip.MustParsePrefix("10.59.249.0/24")
	seen := map[netip.Addr]bool{}
	for i := 1; i <= 3; i++ {
		n := New("/c", network, i)
		if !network.Contains(n.Address.Addr()) || seen[n.Address.Addr()] || n.Address.Addr() == n.Gateway {
			t.Errorf("%s has %s, gateway %s", n.Name, n.Address, n.Gateway)
		}
		seen[n.Address.Addr()] = true
	}
}
