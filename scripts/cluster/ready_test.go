package cluster

import (
	"os"
	"path/filepath"
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
