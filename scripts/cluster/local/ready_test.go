// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestComponentFailed(t *testing.T) {
	ws := testWorkspace(t)
	if err := componentFailed(ws); err != nil {
		t.Errorf("before any log: %v", err)
	}
	if err := os.MkdirAll(placesOf(ws).logs(), 0o755); err != nil {
		t.Fatal(err)
	}
	for log, want := range map[string]string{
		"I1121 run.go:1] \"started\"\n": "",
		"I1121 run.go:1] \"x\"\nE1121 run.go:72] \"command failed\" err=\"unrecognized feature gate: NoSuch\"\n": `kubelet cannot start: "unrecognized feature gate: NoSuch"`,
	} {
		if err := os.WriteFile(filepath.Join(placesOf(ws).logs(), "kubelet.log"), []byte(log), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := componentFailed(ws); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestParseServing(t *testing.T) {
	for out, want := range map[string]struct{ requests, missing []string }{
		"": {missing: []string{"node1", "node2"}},
		"csr-1 system:node:node1\ncsr-2 system:node:node2\n": {requests: []string{"csr-1", "csr-2"}},
		"csr-2 system:node:node2\ncsr-3 somebody\n":          {requests: []string{"csr-2"}, missing: []string{"node1"}},
	} {
		requests, missing := parseServing(out, 2)
		if !slices.Equal(requests, want.requests) || !slices.Equal(missing, want.missing) {
			t.Errorf("%q: requests %q, missing %q", out, requests, missing)
		}
	}
}
