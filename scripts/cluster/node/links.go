// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"
	"slices"

	"capacityv2.internal/scripts/cluster/machine"
)

// bridge connects the other nodes' links, and the host's, in the first node: the
// host needs nothing but its one link, whatever its packet filter does.
const bridge = "br0"

// pairs are the nodes' links, from the IDs of their first processes. The first node's
// leads to the host, the others' lead to the first node.
func pairs(link string, specs []*Spec, pids []int) []machine.Pair {
	all := []machine.Pair{{Name: link, PeerName: "eth0", PeerPID: pids[0]}}
	for i, spec := range specs[1:] {
		all = append(all, machine.Pair{Name: spec.Node.Name, PID: pids[0], PeerName: "eth0", PeerPID: pids[i+1]})
	}
	return all
}

// hostInterface is the host's end of the first node's link.
func hostInterface(link string, first *Spec) machine.Interface {
	return machine.Interface{Name: link, Address: netip.PrefixFrom(first.Node.Gateway, first.Node.Address.Bits())}
}

// interfaces are those of the node.
func (s *Spec) interfaces() []machine.Interface {
	eth := machine.Interface{Name: "eth0"}
	if len(s.Ports) > 0 {
		eth = machine.Interface{Name: bridge, Bridge: slices.Concat([]string{"eth0"}, s.Ports)}
	}
	eth.Address = s.Node.Address
	// The default route leads nowhere, but the API server looks for it.
	eth.Routes = append([]machine.Route{{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: s.Node.Gateway}}, s.Routes...)
	return []machine.Interface{{Name: "lo"}, eth}
}

// Connect makes the nodes' links, from the IDs of their first processes. link is the name of
// the host's end.
func Connect(link string, specs []*Spec, pids []int) error {
	for _, pair := range pairs(link, specs, pids) {
		if err := pair.Make(); err != nil {
			return err
		}
	}
	return hostInterface(link, specs[0]).Set()
}
