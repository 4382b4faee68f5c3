// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"net"
	"strconv"

	"capacityv2.internal/scripts/ground/run"
)

// port is a port that a component listens on.
type port struct {
	// Variable is what hack/local-up-cluster.sh calls it.
	Variable string
	Number   int
}

// hostPorts are used when the cluster shares the host's network. They are not
// upstream's: its integration tests take any etcd on 2379 for theirs, and another
// local cluster has 6443.
var hostPorts = []port{
	{Variable: "API_SECURE_PORT", Number: 26443},
	{Variable: "ETCD_PORT", Number: 22379},
	{Variable: "KCM_SECURE_PORT", Number: 20257},
	{Variable: "SCHEDULER_SECURE_PORT", Number: 20259},
}

// choosePorts returns the ports for the mode; none where the cluster has a
// network of its own. A variable of the port's name overrides it.
func choosePorts(m Mode, getenv func(string) string) ([]port, error) {
	if m == ModeFull {
		return nil, nil
	}
	var ports []port
	for _, p := range hostPorts {
		if v := getenv(p.Variable); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > 65535 {
				return nil, run.Refuse(p.Variable+"="+v, "a port from 1 to 65535", fmt.Sprintf("%s=%d make up", p.Variable, p.Number))
			}
			p.Number = n
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// requirePorts refuses when one of the ports is taken.
func requirePorts(ports []port) error {
	for _, p := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", p.Number))
		if err == nil {
			if err := l.Close(); err != nil {
				return err
			}
			continue
		}
		return run.Refuse(fmt.Sprintf("port %d is in use", p.Number),
			"it free for "+p.Variable, fmt.Sprintf("ss -ltnp sport = :%d, which names the program; or %s=<a free port> make up", p.Number, p.Variable))
	}
	return nil
}
