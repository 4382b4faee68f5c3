package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestParsePools(t *testing.T) {
	segments, err := parsePools([]string{"node1=100Gi,80Gi", "node2=1", "*=2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(segments) != 3 || !slices.Equal(segments[0].Pools, []int64{100 << 30, 80 << 30}) || segments[1].Labels["kubernetes.io/hostname"] != "node2" || len(segments[2].Labels) != 0 {
		t.Errorf("got %v", segments)
	}
}

func TestBadInput(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for args, want := range map[string]string{
		"":                           "there are no pools",
		"--pools 100Gi":              "no node",
		"--pools node1=":             `"" is no size`,
		"--pools node1=large":        `"large" is no size`,
		"--pools node1=1Gi":          "no cluster",
		"--pools node1=1Gi more":     "unknown command",
		"--pools *=1Gi --kubelets x": "the nodes whose kubelets to serve",
	} {
		cmd := command()
		cmd.SetArgs(strings.Fields(args))
		cmd.SetOut(io.Discard)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", args, err, want)
		}
	}
}
