package machine

import "net/netip"

// Pair connects two network namespaces, each named by the ID of a process in it; 0 is
// ours.
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
