package api

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExample applies the example of the docs with kubectl and reads it back with
// client-go.
func TestExample(t *testing.T) {
	c := connect(t)
	driverName, capacityName := c.applyExample(t)

	capacity, err := c.StorageV1().CSIStorageCapacities(c.Namespace).Get(t.Context(), capacityName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pools []string
	for _, q := range capacity.AvailableCapacities {
		pools = append(pools, q.String())
	}
	if want := []string{"120Gi", "80Gi", "50Gi"}; !slices.Equal(pools, want) {
		t.Errorf("availableCapacities: %v, want %v", pools, want)
	}
	driver, err := c.StorageV1().CSIDrivers().Get(t.Context(), driverName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := driver.Spec.VolumeRebuilding; r == nil || *r {
		t.Errorf("volumeRebuilding: %v, want the default, false", r)
	}
}

// TestColumn checks what `kubectl get -o wide` shows.
func TestColumn(t *testing.T) {
	c := connect(t)
	_, capacity := c.applyExample(t)

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

// TestRefused checks the error that a user of kubectl gets for a bad value.
func TestRefused(t *testing.T) {
	c := connect(t)
	manifest, _, _ := c.example(t)
	_, capacity, _ := strings.Cut(manifest, "---\n")
	_, capacity, _ = strings.Cut(capacity, "---\n")
	_, err := c.kubectl(t, strings.Replace(capacity, "- 80Gi", "- -1Gi", 1), "apply", "-f", "-")
	const want = `availableCapacities[1]: Invalid value: "-1Gi": must be greater than or equal to 0`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v\nwant %s", err, want)
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
