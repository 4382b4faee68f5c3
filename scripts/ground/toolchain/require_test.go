// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"os"
	"path/filepath"
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

// TestRequireGoOfDefaults: the environment cannot say that there is no experiment where a file of the user names one.
func TestRequireGoOfDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	t.Setenv("GOENV", file)
	for content, refuse := range map[string]bool{"": false, "GOAMD64=v3\n": false, "GOEXPERIMENT=jsonv2\n": true} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		err := RequireGo(t.Context())
		if run.IsRefusal(err) != refuse || refuse && !strings.Contains(err.Error(), "go env -u GOEXPERIMENT") {
			t.Errorf("%q: %v, want a refusal: %t", content, err, refuse)
		}
	}
}
