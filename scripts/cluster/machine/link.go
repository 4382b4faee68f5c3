// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Pair connects two network namespaces, each named by the ID of a process in it; 0 is ours.
type Pair struct {
	Name, PeerName string
	PID, PeerPID   int
}

// Interface is a network interface of a namespace.
type Interface struct {
	Name string
	// Bridge makes a bridge of these interfaces, which get no address.
	Bridge []string
	// Address is the one that it gets; zero for none.
	Address netip.Prefix
	// Routes lead to networks, through an address.
	Routes []Route
}

// Route leads to a network through an address.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

// Make makes the pair. Its ends are down.
func (p Pair) Make() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = p.Name
	if p.PID != 0 {
		attributes.Namespace = netlink.NsPid(p.PID)
	}
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: p.PeerName, PeerNamespace: netlink.NsPid(p.PeerPID)}); err != nil {
		return fmt.Errorf("link %s: %w", p.Name, err)
	}
	return nil
}

// Set sets the interface up, in the namespace that we are in.
func (i Interface) Set() error {
	if len(i.Bridge) > 0 {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = i.Name
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
			return fmt.Errorf("bridge %s: %w", i.Name, err)
		}
	}
	link, err := netlink.LinkByName(i.Name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", i.Name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("interface %s: %w", i.Name, err)
	}
	for _, name := range i.Bridge {
		port, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetMaster(port, link)
		}
		if err == nil {
			err = netlink.LinkSetUp(port)
		}
		if err != nil {
			return fmt.Errorf("port %s of %s: %w", name, i.Name, err)
		}
	}
	if i.Address.IsValid() {
		network := ipNet(i.Address)
		network.IP = i.Address.Addr().AsSlice()
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: network}); err != nil {
			return fmt.Errorf("address %s of %s: %w", i.Address, i.Name, err)
		}
	}
	for _, r := range i.Routes {
		if err := netlink.RouteAdd(&netlink.Route{Dst: ipNet(r.To), Gw: r.Via.AsSlice()}); err != nil {
			return fmt.Errorf("route to %s: %w", r.To, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
