package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for arguments, want := range map[string]string{
		"--mode=controller --controller=/s":          "",
		"--mode=controller":                          "--controller is missing",
		"--mode=both":                                "expected node or controller",
		"--pools=a=/a:1Gi":                           "--node is missing",
		"--node=n":                                   "either --config or --pools",
		"--node=n --config=/c --pools=a=/a:1Gi":      "either --config or --pools",
		"--node=n --pools=a=/a":                      "expected NAME=PATH:SIZE",
		"--node=n --pools=a=/a:1Gi,b=b:2Gi -v=4":     "",
		"--node=n --pools=a=/a:1Gi --report-pools=0": "",
	} {
		o, err := parse(strings.Fields(arguments))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v; expected %q", arguments, err, want)
		}
		if err == nil && o.mode == "node" && o.socket != "/var/lib/kubelet/plugins/reference.csi.capacityv2.internal/csi.sock" {
			t.Errorf("%s: socket %s", arguments, o.socket)
		}
	}
}
