package machine

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// HasDefaultRoute reports whether the network that we are in has one: the API
// server asks it for the address to announce.
func HasDefaultRoute() bool {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return false
	}
	for _, r := range routes {
		if prefix, ok := destination(r); ok && prefix.Bits() == 0 {
			return true
		}
	}
	return false
}

// hostRoutes returns where the host's routes lead, without the default one.
func hostRoutes() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for _, r := range routes {
		if prefix, ok := destination(r); ok && prefix.Bits() > 0 {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes, nil
}

// destination returns where a route leads. The kernel may leave it out for the default
// route.
func destination(r netlink.Route) (netip.Prefix, bool) {
	if r.Dst == nil {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0), true
	}
	prefix, err := netip.ParsePrefix(r.Dst.String())
	return prefix, err == nil
}

// RemoveLink removes a network link. The kernel has done so already if the namespace of
// its other end is gone.
func RemoveLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return nil
	}
	if _, again := netlink.LinkByName(name); errors.As(again, &gone) {
		return nil
	}
	return err
}
