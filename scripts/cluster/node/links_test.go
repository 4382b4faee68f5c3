// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"
	"reflect"
	"testing"

	"capacityv2.internal/scripts/cluster/machine"
)

func route(to, via string) machine.Route {
	return machine.Route{To: netip.MustParsePrefix(to), Via: netip.MustParseAddr(via)}
}

func TestLinksOfOneNode(t *testing.T) {
	_, specs := testNodes(t, 1)
	if got, want := pairs("cap-1", specs, []int{11}), []machine.Pair{{Name: "cap-1", PeerName: "eth0", PeerPID: 11}}; !reflect.DeepEqual(got, want) {
		t.Errorf("on the host: %+v", got)
	}
	want := []machine.Interface{{Name: "lo"}, {Name: "eth0", Address: netip.MustParsePrefix("10.59.249.2/24"), Routes: []machine.Route{route("0.0.0.0/0", "10.59.249.1")}}}
	if got := specs[0].interfaces(); !reflect.DeepEqual(got, want) {
		t.Errorf("in the node: %+v", got)
	}
}

func TestLinksOfThreeNodes(t *testing.T) {
	_, specs := testNodes(t, 3)
	wantPairs := []machine.Pair{
		{Name: "cap-1", PeerName: "eth0", PeerPID: 11},
		{Name: "node2", PID: 11, PeerName: "eth0", PeerPID: 12},
		{Name: "node3", PID: 11, PeerName: "eth0", PeerPID: 13},
	}
	if got := pairs("cap-1", specs, []int{11, 12, 13}); !reflect.DeepEqual(got, wantPairs) {
		t.Errorf("on the host: %+v", got)
	}
	want := []machine.Interface{{Name: "lo"}, {
		Name: "br0", Bridge: []string{"eth0", "node2", "node3"}, Address: netip.MustParsePrefix("10.59.249.2/24"),
		Routes: []machine.Route{route("0.0.0.0/0", "10.59.249.1"), route("10.88.2.0/24", "10.59.249.3"), route("10.88.3.0/24", "10.59.249.4")},
	}}
	if got := specs[0].interfaces(); !reflect.DeepEqual(got, want) {
		t.Errorf("in node1: %+v", got)
	}
	want = []machine.Interface{{Name: "lo"}, {
		Name: "eth0", Address: netip.MustParsePrefix("10.59.249.4/24"),
		Routes: []machine.Route{route("0.0.0.0/0", "10.59.249.1"), route("10.88.1.0/24", "10.59.249.2"), route("10.88.2.0/24", "10.59.249.3")},
	}}
	if got := specs[2].interfaces(); !reflect.DeepEqual(got, want) {
		t.Errorf("in node3: %+v", got)
	}
}
