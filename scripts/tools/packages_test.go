package tools

import (
	"strings"
	"testing"

	"capacityv2.internal/scripts/progress"
)

func TestRequireProgramsNamesPackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := RequirePrograms(t.Context(), "protoc", "git")
	if !progress.IsRefusal(err) || !strings.Contains(err.Error(), "apt-get install git protobuf-compiler") {
		t.Errorf("got %v", err)
	}
}
