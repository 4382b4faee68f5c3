package cluster

import (
	"net/netip"
	"testing"
)

func TestChooseNetwork(t *testing.T) {
	p := netip.MustParsePrefix
	for _, test := range []struct {
		taken []netip.Prefix
		want  string
	}{
		{nil, "10.59.249.0/24"},
		{[]netip.Prefix{p("10.59.249.64/26")}, "10.59.248.0/24"},
		{[]netip.Prefix{p("10.0.0.0/8")}, "172.29.249.0/24"}, // a company's network
		{[]netip.Prefix{p("10.0.0.0/8"), p("172.16.0.0/12"), p("192.168.0.0/16")}, ""},
	} {
		got, err := chooseNetwork(test.taken)
		if (err == nil) != (test.want != "") || (err == nil && got.String() != test.want) {
			t.Errorf("beside %v: %v, %v, want %q", test.taken, got, err, test.want)
		}
	}
}

func TestNodesHaveAddressesOfTheirOwn(t *testing.T) {
	network := netip.MustParsePrefix("10.59.249.0/24")
	seen := map[netip.Addr]bool{}
	for i := 1; i <= 3; i++ {
		n := newNode("/c", network, i)
		if !network.Contains(n.Address.Addr()) || seen[n.Address.Addr()] || n.Address.Addr() == n.Gateway {
			t.Errorf("%s has %s, gateway %s", n.Name, n.Address, n.Gateway)
		}
		seen[n.Address.Addr()] = true
	}
}
