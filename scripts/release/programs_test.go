package release

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePlatforms(t *testing.T) {
	for list, want := range map[string]string{
		"linux/arm64,linux/amd64":   "[linux/amd64 linux/arm64]",
		"darwin/arm64 darwin/arm64": "[darwin/arm64]",
		"plan9/amd64":               "unknown platform plan9/amd64",
		"linux":                     "unknown platform linux",
		"linux/mips":                "unknown platform linux/mips",
	} {
		p, err := ParsePlatforms(list)
		got := fmt.Sprint(p)
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), "\n")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
	p, err := ParsePlatforms("")
	if err != nil || len(p) == 0 || !strings.Contains(fmt.Sprint(p), "linux/"+Host().Arch) {
		t.Errorf("default %v, %v", p, err)
	}
}

func TestCheckTargets(t *testing.T) {
	dir := t.TempDir()
	script := func(server ...string) {
		write(t, filepath.Join(dir, "hack/lib/init.sh"), fmt.Sprintf("KUBE_CLIENT_TARGETS=(%s)\nKUBE_NODE_TARGETS=(%s)\nKUBE_SERVER_TARGETS=(%s)\n",
			strings.Join(clientTargets, " "), strings.Join(nodeTargets, " "), strings.Join(server, " ")))
	}
	script(serverTargets...)
	if err := checkTargets(t.Context(), dir); err != nil {
		t.Errorf("the same lists: %v", err)
	}
	script(append([]string{"cmd/kube-new"}, serverTargets...)...)
	if err := checkTargets(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "cmd/kube-new") {
		t.Errorf("a new program of upstream: %v", err)
	}
	write(t, filepath.Join(dir, "hack/lib/init.sh"), "exit 0\n")
	if err := checkTargets(t.Context(), dir); err == nil {
		t.Error("a script that says nothing passes")
	}
}
