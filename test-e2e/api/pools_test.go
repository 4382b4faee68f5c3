package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selectedNode is where the scheduler tells the provisioner its decision.
const selectedNode = "volume.kubernetes.io/selected-node"

// createClaims creates a claim of the example's class for each size.
func (c *cluster) createClaims(t *testing.T, prefix string, sizes ...string) []string {
	t.Helper()
	class := "three-pools-" + c.Suffix
	var names []string
	for i, size := range sizes {
		name := fmt.Sprintf("%s-%d", prefix, i)
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class,
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
			},
		}
		if _, err := c.CoreV1().PersistentVolumeClaims(c.Namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// TestJointEvaluation checks that the scheduler packs all volumes of a pod into
// the pools of 120, 80 and 50 GiB. Each volume alone fits in both cases.
func TestJointEvaluation(t *testing.T) {
	requireNode(t)
	c := connect(t)
	image := c.pauseImage(t)
	c.applyExample(t)

	rejected := c.createPod(t, image, c.createClaims(t, "rejected", "100Gi", "100Gi")...)
	c.expectNoRoom(t, rejected.Name)

	// No driver provisions here: what counts is that the scheduler has decided.
	accepted := c.createClaims(t, "accepted", "50Gi", "120Gi", "80Gi")
	c.createPod(t, image, accepted...)
	for _, name := range accepted {
		c.expectSelectedNode(t, name)
	}
}

// TestStory1 checks the five examples of the KEP's first story, with the manifest
// of the docs. Volumes made by hand stand in for a driver's, so that accepted pods
// run.
func TestStory1(t *testing.T) {
	requireNode(t)
	c := connect(t)
	c.mustKubectl(t, c.readExample(t, "story-1.yaml", "story-1"), "apply", "-f", "-")
	class := "story-1-" + c.Suffix
	c.removeDriver(t, class+".csi.example.com", class+"-one-disk", class+"-three-disks", class+"-three-more-disks")

	for _, pod := range []string{"two-100gi-on-one-disk", "one-120gi-on-three-disks", "four-80gi-on-three-disks"} {
		c.removePod(t, pod)
		c.expectNoRoom(t, pod)
	}
	for pod, volumes := range map[string]int{"two-100gi-on-three-disks": 2, "three-80gi-on-three-disks": 3} {
		c.removePod(t, pod)
		for i := range volumes {
			c.createVolume(t, c.expectSelectedNode(t, fmt.Sprintf("%s-data-%d", pod, i)))
		}
		c.expectReady(t, pod)
	}
}

// expectSelectedNode waits until the scheduler has decided for node1, and returns
// the claim.
func (c *cluster) expectSelectedNode(t *testing.T, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	var claim *corev1.PersistentVolumeClaim
	eventually(t, time.Minute, func() (err error) {
		claim, err = c.claimOnNode(t, name, "node1")
		return err
	})
	return claim
}

// claimOnNode returns a claim, and an error if the scheduler has not decided for
// the node.
func (c *cluster) claimOnNode(t *testing.T, name, node string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := c.CoreV1().PersistentVolumeClaims(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err == nil && claim.Annotations[selectedNode] != node {
		err = fmt.Errorf("claim %s has the selected node %q, want %s", name, claim.Annotations[selectedNode], node)
	}
	return claim, err
}

// createVolume creates a volume for a claim. It is a folder that exists.
func (c *cluster) createVolume(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               claim.Spec.Resources.Requests,
			AccessModes:            claim.Spec.AccessModes,
			StorageClassName:       *claim.Spec.StorageClassName,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp", Type: new(corev1.HostPathDirectory)}},
			ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			// The pod's end leaves the volume; the test removes it.
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		},
	}
	if _, err := c.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.cleanup(t, "volume", func(ctx context.Context) error {
		return c.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	})
}
