package release

import (
	"fmt"
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
