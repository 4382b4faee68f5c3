package cluster

import (
	"net/netip"
	"slices"
	"testing"
)

func testNodes(t *testing.T, count int) ([]*node, []*nodeSpec) {
	t.Helper()
	nodes := newNodes(t.TempDir(), netip.MustParsePrefix("10.59.249.0/24"), count)
	var specs []*nodeSpec
	for _, n := range nodes {
		spec, err := n.prepare("/bin", "pause", nodes)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return nodes, specs
}

func TestLinksOfOneNode(t *testing.T) {
	_, specs := testNodes(t, 1)
	want := []string{
		"link add cap-1 type veth peer name eth0 netns 11",
		"address add 10.59.249.1/24 dev cap-1",
		"link set cap-1 up",
	}
	if got := linkCommands("cap-1", specs, []int{11}); !slices.Equal(got, want) {
		t.Errorf("on the host: %q", got)
	}
	want = []string{
		"link set lo up", "link set eth0 up",
		"address add 10.59.249.2/24 dev eth0", "route add default via 10.59.249.1",
	}
	if got := specs[0].networkCommands(); !slices.Equal(got, want) {
		t.Errorf("in the node: %q", got)
	}
}

func TestLinksOfThreeNodes(t *testing.T) {
	_, specs := testNodes(t, 3)
	want := []string{
		"link add name node2 netns 11 type veth peer name eth0 netns 12",
		"link add name node3 netns 11 type veth peer name eth0 netns 13",
	}
	if got := linkCommands("cap-1", specs, []int{11, 12, 13}); !slices.Equal(got[3:], want) {
		t.Errorf("on the host: %q", got)
	}
	want = []string{
		"link set lo up", "link set eth0 up", "link add br0 type bridge", "link set br0 up",
		"link set eth0 master br0 up", "link set node2 master br0 up", "link set node3 master br0 up",
		"address add 10.59.249.2/24 dev br0", "route add default via 10.59.249.1",
		"route add 10.88.2.0/24 via 10.59.249.3", "route add 10.88.3.0/24 via 10.59.249.4",
	}
	if got := specs[0].networkCommands(); !slices.Equal(got, want) {
		t.Errorf("in node1: %q", got)
	}
	want = []string{
		"link set lo up", "link set eth0 up",
		"address add 10.59.249.4/24 dev eth0", "route add default via 10.59.249.1",
		"route add 10.88.1.0/24 via 10.59.249.2", "route add 10.88.2.0/24 via 10.59.249.3",
	}
	if got := specs[2].networkCommands(); !slices.Equal(got, want) {
		t.Errorf("in node3: %q", got)
	}
}
