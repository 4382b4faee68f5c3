// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestColumn checks what `kubectl get -o wide` shows.
func TestColumn(t *testing.T) {
	c := connect(t)
	capacity := c.applyExample(t)

	header, row, _ := strings.Cut(strings.TrimSpace(c.mustKubectl(t, "", "get", "csistoragecapacities", "--output=wide", capacity)), "\n")
	if !slices.Contains(strings.Fields(header), "POOLS") {
		t.Errorf("no column POOLS in %q", header)
	}
	for _, pool := range []string{"120Gi", "80Gi", "50Gi"} {
		if !strings.Contains(row, pool) {
			t.Errorf("pool %s is not in %q", pool, row)
		}
	}
}

// TestExplain checks that `kubectl explain` documents the fields.
func TestExplain(t *testing.T) {
	c := connect(t)
	for _, test := range []struct{ field, kind, says string }{
		{"csistoragecapacity.availableCapacities", "<[]Quantity>", "each independent storage pool"},
		{"csidriver.spec.volumeRebuilding", "<boolean>", "volumeRebuilding indicates"},
	} {
		out := c.mustKubectl(t, "", "explain", test.field)
		text := strings.Join(strings.Fields(out), " ") // kubectl breaks the lines
		for _, want := range []string{test.kind, test.says, "CSIStorageCapacityV2"} {
			if !strings.Contains(text, want) {
				t.Errorf("kubectl explain %s does not say %q:\n%s", test.field, want, out)
			}
		}
	}
}

// version is our release's: build metadata on the version of the base.
var version = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[a-z]+\.\d+)?\+capacityv2\.\d+$`)

// TestVersion checks that the programs are those of our release, and that the
// gate is on in the API server.
func TestVersion(t *testing.T) {
	c := connect(t)
	var got struct {
		ClientVersion, ServerVersion struct{ GitVersion, Minor string }
	}
	if err := json.Unmarshal([]byte(c.mustKubectl(t, "", "version", "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{"client": got.ClientVersion.GitVersion, "server": got.ServerVersion.GitVersion} {
		if !version.MatchString(v) {
			t.Errorf("%s version %q, want one like v1.37.2+capacityv2.1", name, v)
		}
	}
	if strings.HasSuffix(got.ServerVersion.Minor, "+") {
		t.Errorf("minor version %q, want it without +", got.ServerVersion.Minor)
	}
	const gate = `kubernetes_feature_enabled{name="CSIStorageCapacityV2",stage="ALPHA"} 1`
	if !strings.Contains(c.mustKubectl(t, "", "get", "--raw", "/metrics"), gate) {
		t.Errorf("the API server's metrics do not say %s", gate)
	}
}
