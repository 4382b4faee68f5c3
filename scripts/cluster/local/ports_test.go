// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

func TestChoosePorts(t *testing.T) {
	env := map[string]string{"ETCD_PORT": "4001"}
	getenv := func(k string) string { return env[k] }
	for mode, want := range map[Mode]int{ModeFull: 0, ModeControlPlane: 4} {
		ports, err := choosePorts(mode, getenv)
		if err != nil || len(ports) != want {
			t.Errorf("%s: %v, %v, want %d ports", mode, ports, err, want)
		}
		for _, p := range ports {
			if p.Variable == "ETCD_PORT" && p.Number != 4001 {
				t.Errorf("%s: ETCD_PORT is %d, want the user's", mode, p.Number)
			}
		}
	}
	for _, bad := range []string{"x", "0", "65536", "-1"} {
		env["ETCD_PORT"] = bad
		if _, err := choosePorts(ModeControlPlane, getenv); !run.IsRefusal(err) {
			t.Errorf("ETCD_PORT=%s: %v, want a refusal", bad, err)
		}
	}
}

func TestRequirePortsNamesThePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := port{Variable: "API_SECURE_PORT", Number: l.Addr().(*net.TCPAddr).Port}
	err = requirePorts([]port{p})
	if !run.IsRefusal(err) || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", p.Number)) {
		t.Errorf("taken: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := requirePorts([]port{p}); err != nil {
		t.Errorf("free: %v", err)
	}
}
