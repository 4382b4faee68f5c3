// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const (
	driverName  = "my-driver.example.com"
	topologyKey = "topology.my-driver.example.com/node"
	// zoned is a driver whose topology has two keys.
	zoned = "zoned.example.com"
	zone  = "topology.zoned.example.com/zone"
	disks = "topology.zoned.example.com/disks"
)

// TestTurningItOff names the nodes of released volumes with the script of docs/examples.
func TestTurningItOff(t *testing.T) {
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{
		NoScheduler: true,
		ServerFlags: serverFlags,
	})
	for _, name := range []string{"a", "b"} {
		c.CreateNode(name, map[string]string{topologyKey: name + "-label", zone: "zone", disks: name + "-disks"})
		createCSINode(c, name)
	}
	for _, name := range []string{"no-csinode", "no-label"} {
		c.CreateNode(name, nil)
	}
	createCSINode(c, "no-label")
	a, b, other := home(c, "a"), home(c, "b"), "a=1"
	volumes := map[string]struct {
		driver string
		homes  []string
		want   string // as affinityOf has it, or nothing: the volume stays as it is
	}{
		"one-home":       {driverName, []string{a}, topologyKey + "=a-label"},
		"two-homes":      {driverName, []string{a, b}, topologyKey + "=a-label or " + topologyKey + "=b-label"},
		"two-keys":       {zoned, []string{b}, disks + "=b-disks," + zone + "=zone"},
		"one-is-gone":    {driverName, []string{"gone=1", b}, topologyKey + "=b-label"},
		"all-are-gone":   {driverName, []string{"gone=1"}, ""},
		"another-node":   {driverName, []string{other}, ""},
		"another-driver": {"another.example.com", []string{a}, ""},
		"no-csinode":     {driverName, []string{home(c, "no-csinode")}, ""},
		"no-label":       {driverName, []string{home(c, "no-label")}, ""},
		"nobody-has-it":  {driverName, nil, ""},
		"no-csi":         {"", []string{a}, ""},
	}
	for name, v := range volumes {
		createReleased(c, name, v.driver, strings.Join(v.homes, ","))
	}

	output := nameNodes(c)
	for name, v := range volumes {
		pv, err := c.Client().CoreV1().PersistentVolumes().Get(c, name, metav1.GetOptions{})
		c.ExpectNoError(err, "get volume")
		if got := affinityOf(pv); got != v.want {
			t.Errorf("volume %s has the node affinity %q, want %q", name, got, v.want)
		}
		homes, isReleased := pv.Annotations[storagehelpers.AnnHomeNodes]
		if isReleased != (v.want == "") || isReleased && homes != strings.Join(v.homes, ",") {
			t.Errorf("volume %s: home nodes %q (%t), want them only while it is released", name, homes, isReleased)
		}
		if !strings.Contains(output, name) {
			t.Errorf("the script says nothing about volume %s", name)
		}
	}
}

// TestDeleteAfterTurningOff deletes a volume whose node was named by the script. The external-provisioner of the
// node has to know that it is its own.
func TestDeleteAfterTurningOff(t *testing.T) {
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{
		ServerFlags: serverFlags,
	})
	g := apply(c)
	createCSINode(c, node)
	socket, _ := g.startDriver()
	g.startProvisioner(socket)
	g.expectPools("100Gi", "60Gi")
	pod := clustertest.Pod{Name: "app", Class: class, Sizes: []string{"90Gi"}}
	c.CreatePod(pod)
	c.ExpectNode(pod.Name, node)
	g.expectPools("60Gi", "10Gi")

	pv := c.Volume("app-0")
	named := affinityOf(pv)
	patch := `{"metadata": {"annotations": {"` + storagehelpers.AnnHomeNodes + `": "` + home(c, node) + `"}}, "spec": {"nodeAffinity": null}}`
	_, err := c.Client().CoreV1().PersistentVolumes().Patch(c, pv.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.ExpectNoError(err, "release the volume")
	nameNodes(c)
	if got := affinityOf(c.Volume("app-0")); got != named {
		t.Errorf("the volume has the node affinity %q, want that from before, %q", got, named)
	}
	c.DeletePod(pod)
	g.expectPools("100Gi", "60Gi")
}

// createCSINode does what a kubelet does for the drivers of its node.
func createCSINode(c *clustertest.Cluster, name string) {
	c.Helper()
	_, err := c.Client().StorageV1().CSINodes().Create(c, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: driverName, NodeID: name, TopologyKeys: []string{topologyKey}},
			{Name: zoned, NodeID: name, TopologyKeys: []string{zone, disks}},
		}},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSINode")
}

// home returns the entry of a node in the list of home nodes.
func home(c *clustertest.Cluster, name string) string {
	c.Helper()
	node, err := c.Client().CoreV1().Nodes().Get(c, name, metav1.GetOptions{})
	c.ExpectNoError(err, "get node")
	return storagehelpers.FormatHomeNodes([]storagehelpers.HomeNode{{Name: name, UID: node.UID}})
}

// createReleased creates a volume that its driver has released. Without a driver, it is none of CSI.
func createReleased(c *clustertest.Cluster, name, driver, homes string) {
	c.Helper()
	source := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}
	if driver != "" {
		source = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}
	}
	_, err := c.Client().CoreV1().PersistentVolumes().Create(c, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{storagehelpers.AnnHomeNodes: homes}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: source,
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create volume")
}

// nameNodes runs the script, and returns what it says.
func nameNodes(c *clustertest.Cluster) string {
	c.Helper()
	components, err := filepath.Abs(variable(c.TContext.TContext, "COMPONENTS"))
	c.ExpectNoError(err)
	cmd := exec.CommandContext(c, "sh", "../../docs/examples/set-home-affinities.sh")
	cmd.Env = append(os.Environ(),
		"PATH="+components+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+clustertest.Kubeconfig(c.TContext.TContext, c.RESTConfig(), ""), "KUBECACHEDIR="+c.TempDir())
	output, err := cmd.CombinedOutput()
	c.Logf("the script says:\n%s", output)
	c.ExpectNoError(err, "run the script")
	return string(output)
}

// affinityOf returns the labels that a node of a volume has to have.
func affinityOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil {
		return ""
	}
	var terms []string
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		var labels []string
		for _, e := range term.MatchExpressions {
			labels = append(labels, e.Key+"="+strings.Join(e.Values, "/"))
		}
		slices.Sort(labels)
		terms = append(terms, strings.Join(labels, ","))
	}
	return strings.Join(terms, " or ")
}
