package cluster

import (
	"strings"
	"testing"

	"capacityv2.internal/scripts/progress"
)

func TestChooseMode(t *testing.T) {
	const socket = "unix:///run/containerd/containerd.sock"
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
		{name: "less on demand, own runtime", options: Options{Mode: "control-plane", RuntimeEndpoint: socket}, want: ModeControlPlane},
		{name: "full on demand", options: Options{Mode: "full"}, want: ModeFull},
		{name: "full on demand, not root", options: Options{Mode: "full"}, obstacle: "not root", refuse: "not root"},
		{name: "own runtime", options: Options{RuntimeEndpoint: socket}, want: ModeHost},
		{name: "own runtime, not root", options: Options{RuntimeEndpoint: socket}, obstacle: "not root", want: ModeControlPlane, notice: "not root"},
		{name: "unknown", options: Options{Mode: "half"}, refuse: "CLUSTER_MODE=half"},
		{name: "no address", options: Options{RuntimeEndpoint: "/run/containerd/containerd.sock"}, refuse: "CONTAINER_RUNTIME_ENDPOINT"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, notice, err := chooseMode(test.options, test.obstacle)
			if test.refuse != "" {
				if !progress.IsRefusal(err) || !strings.Contains(err.Error(), test.refuse) {
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
