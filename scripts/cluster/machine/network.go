// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
)

// ChooseNetwork returns a network of 254 addresses, for the host and the nodes, that overlaps
// none of the taken ones. It prefers those that routers and container tools seldom use.
func ChooseNetwork(taken []netip.Prefix) (netip.Prefix, error) {
	for _, two := range [][2]byte{{10, 59}, {172, 29}, {192, 168}} {
		for third := byte(249); third >= 200; third-- {
			network := netip.PrefixFrom(netip.AddrFrom4([4]byte{two[0], two[1], third, 0}), 24)
			if !slices.ContainsFunc(taken, network.Overlaps) {
				return network, nil
			}
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free private network beside %v", taken)
}

// HostNetworks returns the networks of the host's interfaces and routes.
func HostNetworks() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var all []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			all = append(all, p.Masked())
		}
	}
	routes, err := routes()
	return append(all, slices.DeleteFunc(routes, isDefault)...), err
}

// HasDefaultRoute reports whether the network that we are in has one: the API server asks it for
// the address to announce.
func HasDefaultRoute() bool {
	all, err := routes()
	return err == nil && slices.ContainsFunc(all, isDefault)
}

func isDefault(route netip.Prefix) bool { return route.Bits() == 0 }

// routes returns where the routes of the network that we are in lead.
func routes() ([]netip.Prefix, error) {
	all, err := netlink.RouteList(nil, syscall.AF_INET)
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, r := range all {
		if r.Dst == nil { // the kernel may leave out that of the default route
			prefixes = append(prefixes, netip.PrefixFrom(netip.IPv4Unspecified(), 0))
		} else if p, err := netip.ParsePrefix(r.Dst.String()); err == nil {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes, nil
}

// RemoveLink removes a network link. The kernel has done so already, or does so meanwhile, if the
// namespace of its other end is gone.
func RemoveLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	var gone netlink.LinkNotFoundError
	if _, again := netlink.LinkByName(name); errors.As(again, &gone) {
		return nil
	}
	return err
}
