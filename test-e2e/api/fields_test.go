package api

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
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
	if r := driver.Spec.VolumeRebuilding; r == nil || !*r {
		t.Errorf("volumeRebuilding: %v, want true", r)
	}
}

// TestDriverDefault checks that a driver that says nothing is stored with false.
func TestDriverDefault(t *testing.T) {
	c := connect(t)
	driver, err := c.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: c.Suffix + ".csi.example.com"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.StorageV1().CSIDrivers().Delete(t.Context(), driver.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	if r := driver.Spec.VolumeRebuilding; r == nil || *r {
		t.Errorf("volumeRebuilding: %v, want false", r)
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

// TestRefused checks the errors that a user gets for bad values.
func TestRefused(t *testing.T) {
	c := connect(t)
	const negative = `availableCapacities[1]: Invalid value: "-1Gi": must be greater than or equal to 0`
	const tooMany = `availableCapacities: Too many: 257: must have at most 256 items`

	t.Run("negative, kubectl", func(t *testing.T) {
		manifest, _, _ := c.example(t)
		_, capacity, _ := strings.Cut(manifest, "---\n")
		_, capacity, _ = strings.Cut(capacity, "---\n")
		_, err := c.kubectl(t, strings.Replace(capacity, "- 80Gi", "- -1Gi", 1), "apply", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), negative) {
			t.Errorf("error %v\nwant %s", err, negative)
		}
	})

	for _, test := range []struct {
		name  string
		pools []resource.Quantity
		want  string
	}{
		{"negative", []resource.Quantity{resource.MustParse("1Gi"), resource.MustParse("-1Gi")}, negative},
		{"too many", make([]resource.Quantity, 257), tooMany},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := &storagev1.CSIStorageCapacity{
				ObjectMeta:       metav1.ObjectMeta{GenerateName: "refused-"},
				StorageClassName: "any", NodeTopology: &metav1.LabelSelector{},
				AvailableCapacities: test.pools,
			}
			_, err := c.StorageV1().CSIStorageCapacities(c.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
		})
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
			t.Errorf("%s version %q, want one like v1.37.1+capacityv2.1", name, v)
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
