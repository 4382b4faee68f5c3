// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os/exec"
	"strings"
	"testing"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/run"
)

func TestChooseMode(t *testing.T) {
	for _, test := range []struct {
		name           string
		options        Options
		obstacle       string
		want           Mode
		notice, refuse string
	}{
		{name: "root on Linux", want: ModeFull},
		{name: "not root", obstacle: "not root", want: ModeControlPlane, notice: "not root"},
		{name: "less on demand", options: Options{Mode: "control-plane"}, want: ModeControlPlane},
		{name: "full on demand", options: Options{Mode: "full"}, want: ModeFull},
		{name: "full on demand, not root", options: Options{Mode: "full"}, obstacle: "not root", refuse: "not root"},
		{name: "unknown", options: Options{Mode: "half"}, refuse: "CLUSTER_MODE=half"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, notice, err := chooseMode(test.options, test.obstacle)
			if test.refuse != "" {
				if !run.IsRefusal(err) || !strings.Contains(err.Error(), test.refuse) {
					t.Fatalf("error %v, want a refusal with %q", err, test.refuse)
				}
				return
			}
			if err != nil || got != test.want {
				t.Fatalf("mode %q, %v, want %q", got, err, test.want)
			}
			if (notice == "") != (test.notice == "") || !strings.Contains(notice, test.notice) {
				t.Errorf("notice %q, want one with %q", notice, test.notice)
			}
		})
	}
}

func TestChooseNodes(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		mode    Mode
		running int
		want    int
		refuse  string
	}{
		{name: "no wish", mode: ModeFull, want: 1},
		{name: "a verb's own number", options: Options{DefaultNodes: 3}, mode: ModeFull, want: 3},
		{name: "wish", options: Options{Nodes: "2", DefaultNodes: 3}, mode: ModeFull, running: 3, want: 2},
		{name: "no wish beside a cluster", options: Options{DefaultNodes: 3}, mode: ModeFull, running: 2, want: 2},
		{name: "most", options: Options{Nodes: "9"}, mode: ModeFull, want: 9},
		{name: "no node", options: Options{Nodes: "0"}, mode: ModeFull, refuse: "NODES=0"},
		{name: "no number", options: Options{Nodes: "x"}, mode: ModeFull, refuse: "NODES=x"},
		{name: "too many", options: Options{Nodes: "100"}, mode: ModeFull, refuse: "from 1 to 9"},
		{name: "no number, no node can run", options: Options{Nodes: "x"}, mode: ModeControlPlane, refuse: "NODES=x"},
		{name: "no node can run", options: Options{Nodes: "3"}, mode: ModeControlPlane},
		{name: "control plane", options: Options{Mode: "control-plane", DefaultNodes: 3}, mode: ModeControlPlane},
		{name: "control plane with nodes", options: Options{Mode: "control-plane", Nodes: "1"}, mode: ModeControlPlane, refuse: "CLUSTER_MODE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := chooseNodes(test.options, test.mode, test.running)
			if test.refuse != "" {
				if !run.IsRefusal(err) || !strings.Contains(err.Error(), test.refuse) {
					t.Fatalf("error %v, want a refusal with %q", err, test.refuse)
				}
				return
			}
			if err != nil || got != test.want {
				t.Fatalf("%d nodes, %v, want %d", got, err, test.want)
			}
		})
	}
}

func TestOtherNumberOfNodesIsRefused(t *testing.T) {
	ws := testWorkspace(t)
	t.Setenv(machine.MarkVariable, "abc123")
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	st := &state{ID: "abc123", Ready: true, Mode: ModeFull, Nodes: 3, ws: ws}
	p := &Plan{Mode: ModeFull, ws: ws, nodes: 1}
	done, err := p.lookAtRunning(t.Context(), st, "", nil)
	if done || !run.IsRefusal(err) || !strings.Contains(err.Error(), "control plane and 3 nodes") {
		t.Errorf("%v, %v, want a refusal", done, err)
	}
}
