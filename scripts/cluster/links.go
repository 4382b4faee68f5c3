package cluster

import (
	"fmt"
	"slices"
)

// bridge connects the other nodes' links, and the host's, in the first node: the
// host needs nothing but its one link, whatever its packet filter does.
const bridge = "br0"

// linkCommands are the arguments of ip that make the nodes' links, from the IDs of
// their first processes. The first node's leads to the host, the others' lead to
// the first node.
func linkCommands(link string, specs []*nodeSpec, pids []int) []string {
	first := specs[0].Node
	commands := []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", link, pids[0]),
		fmt.Sprintf("address add %s/%d dev %s", first.Gateway, first.Address.Bits(), link),
		fmt.Sprintf("link set %s up", link),
	}
	for i, spec := range specs[1:] {
		commands = append(commands, fmt.Sprintf("link add name %s netns %d type veth peer name eth0 netns %d", spec.Node.Name, pids[0], pids[i+1]))
	}
	return commands
}

// networkCommands are the arguments of ip that set up the links that the node has.
func (s *nodeSpec) networkCommands() []string {
	device, commands := "eth0", []string{"link set lo up", "link set eth0 up"}
	if len(s.Ports) > 0 {
		device = bridge
		commands = append(commands, fmt.Sprintf("link add %s type bridge", bridge), fmt.Sprintf("link set %s up", bridge))
		for _, port := range slices.Concat([]string{"eth0"}, s.Ports) {
			commands = append(commands, fmt.Sprintf("link set %s master %s up", port, bridge))
		}
	}
	commands = append(commands,
		fmt.Sprintf("address add %s dev %s", s.Node.Address, device),
		// Leads nowhere, but the API server looks for it.
		fmt.Sprintf("route add default via %s", s.Node.Gateway))
	for _, r := range s.Routes {
		commands = append(commands, fmt.Sprintf("route add %s via %s", r.To, r.Via))
	}
	return commands
}
