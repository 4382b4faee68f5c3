// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

func TestRequireProgramsNamesPackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := RequirePrograms(t.Context(), "protoc", "git")
	if !run.IsRefusal(err) || !strings.Contains(err.Error(), "apt-get install git protobuf-compiler") {
		t.Errorf("got %v", err)
	}
}

func TestPackagesOf(t *testing.T) {
	// ip and ss are of one package.
	got := packagesOf("ss", "ip", "gcc", Seccomp)
	if want := []string{"gcc", "iproute2", "libc6-dev", "libseccomp-dev"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
