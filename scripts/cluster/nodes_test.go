package cluster

import (
	"os"
	"strings"
	"testing"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/progress"
)

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
		{name: "own runtime", options: Options{DefaultNodes: 3}, mode: ModeHost, want: 1},
		{name: "own runtime, one node", options: Options{Nodes: "1"}, mode: ModeHost, want: 1},
		{name: "own runtime, more nodes", options: Options{Nodes: "2"}, mode: ModeHost, refuse: "CONTAINER_RUNTIME_ENDPOINT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := chooseNodes(test.options, test.mode, test.running)
			if test.refuse != "" {
				if !progress.IsRefusal(err) || !strings.Contains(err.Error(), test.refuse) {
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
	self, err := machine.NewProcess("node1", os.Getpid(), "abc123")
	if err != nil {
		t.Fatal(err)
	}
	st := &state{Ready: true, Mode: ModeFull, Nodes: 3, Processes: []machine.Process{self}}
	p := &Plan{Mode: ModeFull, ws: ws, nodes: 1}
	done, err := p.lookAtRunning(t.Context(), st, "", nil)
	if done || !progress.IsRefusal(err) || !strings.Contains(err.Error(), "make up NODES=1") {
		t.Errorf("%v, %v, want a refusal", done, err)
	}
}
