package api

import (
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
	c.expectNoRoom(t, rejected)

	// No driver provisions here: what counts is that the scheduler has decided.
	accepted := c.createClaims(t, "accepted", "50Gi", "120Gi", "80Gi")
	c.createPod(t, image, accepted...)
	for _, name := range accepted {
		eventually(t, time.Minute, func() error {
			claim, err := c.CoreV1().PersistentVolumeClaims(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && claim.Annotations[selectedNode] != "node1" {
				err = fmt.Errorf("claim %s has the selected node %q, want node1", name, claim.Annotations[selectedNode])
			}
			return err
		})
	}
}
