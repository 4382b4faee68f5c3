package machine

import (
	"fmt"
	"net"
	"net/netip"
)

// ChooseNetwork returns a network of 254 addresses, for the host and the nodes,
// that overlaps none of the taken ones.
func ChooseNetwork(taken []netip.Prefix) (netip.Prefix, error) {
	for _, c := range candidates() {
		free := true
		for _, t := range taken {
			free = free && !t.Overlaps(c)
		}
		if free {
			return c, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free private network beside %v", taken)
}

// candidates are private networks that routers and container tools seldom use.
func candidates() []netip.Prefix {
	var ps []netip.Prefix
	for _, two := range [][2]byte{{10, 59}, {172, 29}, {192, 168}} {
		for third := 249; third >= 200; third-- {
			ps = append(ps, netip.PrefixFrom(netip.AddrFrom4([4]byte{two[0], two[1], byte(third), 0}), 24))
		}
	}
	return ps
}

// HostNetworks returns the networks of the host's interfaces and routes.
func HostNetworks() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var ps []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			ps = append(ps, p.Masked())
		}
	}
	routes, err := hostRoutes()
	return append(ps, routes...), err
}
