package api

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	referenceDriver = "reference.csi.capacityv2.internal"
	referenceClass  = "reference"
	// shell is an image that every node has (make up DRIVER=reference).
	shell = "capacityv2.internal/busybox:dev"
)

// requireReferenceDriver skips the test on a cluster without the driver by intention.
// Its pools are those of test-e2e/driver/deploy: 10Gi and 20Gi on each node.
func requireReferenceDriver(t *testing.T) *cluster {
	t.Helper()
	requireNodes(t)
	if os.Getenv("CAPACITYV2_DRIVER") == "" {
		t.Skip("this cluster has no reference driver (make up without DRIVER=reference)")
	}
	c := connect(t)
	eventually(t, time.Minute, func() error {
		objects, err := c.StorageV1().CSIStorageCapacities("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		empty := 0
		for _, o := range objects.Items {
			if o.StorageClassName == referenceClass && len(o.AvailableCapacities) == 2 && o.Capacity.String() == "30Gi" {
				empty++
			}
		}
		if empty != 3 {
			return fmt.Errorf("%d nodes show two empty pools, want 3", empty)
		}
		return nil
	})
	return c
}

// volumePod returns a pod with new claims of the sizes, which runs a command.
func volumePod(name, command string, sizes ...string) string {
	var claims, mounts, volumes strings.Builder
	for i, size := range sizes {
		fmt.Fprintf(&claims, `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s-%[2]d}
spec: {storageClassName: %[3]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: %[4]s}}}
---
`, name, i, referenceClass, size)
		fmt.Fprintf(&mounts, "{name: v%[1]d, mountPath: /v%[1]d}, ", i)
		fmt.Fprintf(&volumes, "{name: v%[2]d, persistentVolumeClaim: {claimName: %[1]s-%[2]d}}, ", name, i)
	}
	return claims.String() + fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: shell, image: %s, imagePullPolicy: Never, command: [sh, -c, %q], volumeMounts: [%s]}
  volumes: [%s]
`, name, shell, command+"; exec sleep 86400", strings.TrimSuffix(mounts.String(), ", "), strings.TrimSuffix(volumes.String(), ", "))
}

// expectUnschedulable waits until the scheduler has refused a pod for a reason.
func (c *cluster) expectUnschedulable(t *testing.T, pod, reason string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		cond, err := c.condition(t.Context(), pod, corev1.PodScheduled)
		if err == nil && (cond.Status != corev1.ConditionFalse || !strings.Contains(cond.Message, reason)) {
			err = fmt.Errorf("PodScheduled is %s: %q, want %q", cond.Status, cond.Message, reason)
		}
		return err
	})
}

// expectRefused waits until the scheduler has refused a pod on all nodes for want of
// room, and checks that no claim has a selected node.
func (c *cluster) expectRefused(t *testing.T, pod, reason string) {
	t.Helper()
	c.expectUnschedulable(t, pod, reason)
	claims, err := c.CoreV1().PersistentVolumeClaims(c.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims.Items {
		if node := claim.Annotations[selectedNode]; strings.HasPrefix(claim.Name, pod+"-") && node != "" {
			t.Errorf("claim %s was sent to %s, want no node", claim.Name, node)
		}
	}
}

// expectNoFailedProvision fails the test if the provisioner had no room for a volume.
func (c *cluster) expectNoFailedProvision(t *testing.T) {
	t.Helper()
	events, err := c.CoreV1().Events(c.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=ProvisioningFailed"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		t.Errorf("claim %s: %s", e.InvolvedObject.Name, e.Message)
	}
}

// TestReferenceDriverExample follows the example of the docs: the log of a pod that has
// moved has a line from each node.
func TestReferenceDriverExample(t *testing.T) {
	c := requireReferenceDriver(t)
	manifest := c.readExample(t, "reference.yaml")
	c.mustKubectl(t, manifest, "apply", "-f", "-")
	c.expectReady(t, "writer")
	home := c.nodeOf(t, "writer")
	c.cleanup(t, "cordon", func(ctx context.Context) error { return c.setSchedulable(ctx, home) })
	c.mustKubectl(t, "", "cordon", home)
	c.mustKubectl(t, "", "delete", "pod", "writer")
	c.mustKubectl(t, manifest, "apply", "-f", "-")
	c.expectReady(t, "writer")
	log := c.mustKubectl(t, "", "exec", "writer", "--", "cat", "/data/log")
	if moved := c.nodeOf(t, "writer"); moved == home || !strings.Contains(log, "started on "+home) || !strings.Contains(log, "started on "+moved) {
		t.Errorf("the pod has moved from %s to %s, and its log is %q", home, moved, log)
	}
	c.expectNoFailedProvision(t)
}

// TestReferenceDriverPools is the first story of the KEP with a driver that reports its
// pools: two volumes of 11Gi do not fit in pools of 10Gi and 20Gi, although each fits
// alone, and both would fit in 30Gi.
func TestReferenceDriverPools(t *testing.T) {
	c := requireReferenceDriver(t)
	c.mustKubectl(t, volumePod("two", "true", "11Gi", "11Gi"), "apply", "-f", "-")
	c.expectRefused(t, "two", "3 node(s) did not have enough free storage")
	c.mustKubectl(t, volumePod("three", "true", "9Gi", "9Gi", "9Gi"), "apply", "-f", "-")
	c.expectReady(t, "three")
	c.expectNoFailedProvision(t)
}

// TestReferenceDriverReservation is the second story: more pods than there is room for
// are created at once, and no volume is asked for where there is none. Each node has room
// for four volumes of 6Gi: one in the small pool, three in the large one.
func TestReferenceDriverReservation(t *testing.T) {
	c := requireReferenceDriver(t)
	var manifest strings.Builder
	for i := range 15 {
		manifest.WriteString("---\n" + volumePod(fmt.Sprintf("pod%d", i), "true", "6Gi"))
	}
	c.mustKubectl(t, manifest.String(), "apply", "-f", "-")
	eventually(t, 2*time.Minute, func() error {
		pods, err := c.CoreV1().Pods(c.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready, refused := 0, 0
		for i := range pods.Items {
			cond, err := c.condition(t.Context(), pods.Items[i].Name, corev1.PodScheduled)
			switch {
			case isReady(&pods.Items[i]):
				ready++
			case err == nil && strings.Contains(cond.Message, "3 node(s) did not have enough free storage"):
				refused++
			}
		}
		if ready != 12 || refused != 3 {
			return fmt.Errorf("%d pods are ready and %d have no room, want 12 and 3", ready, refused)
		}
		return nil
	})
	c.expectNoFailedProvision(t)
}

// TestReferenceDriverRebuild is the third story: a node is drained, and the volume of its
// pod is rebuilt where there is room, with its data.
func TestReferenceDriverRebuild(t *testing.T) {
	c := requireReferenceDriver(t)
	c.mustKubectl(t, volumePod("db", "[ -e /v0/data ] || head -c 1000000 /dev/urandom > /v0/data; sha256sum /v0/data > /v0/sum.$HOSTNAME", "18Gi"), "apply", "-f", "-")
	c.expectReady(t, "db")
	sum := func() string {
		t.Helper()
		sum, _, _ := strings.Cut(c.mustKubectl(t, "", "exec", "db", "--", "sha256sum", "/v0/data"), " ")
		return sum
	}
	before, home := sum(), c.nodeOf(t, "db")

	// The large pools of the other nodes are full: nowhere to go.
	for _, node := range c.firstNodes(t, 3) {
		if node != home {
			filler := strings.Replace(volumePod("on-"+node, "true", "15Gi"), "spec:\n  terminationGrace", "spec:\n  nodeSelector: {kubernetes.io/hostname: "+node+"}\n  terminationGrace", 1)
			c.mustKubectl(t, filler, "apply", "-f", "-")
			c.expectReady(t, "on-"+node)
		}
	}
	c.cleanup(t, "cordon", func(ctx context.Context) error { return c.setSchedulable(ctx, home) })
	c.mustKubectl(t, "", "cordon", home)
	pod := volumePod("db", "true", "18Gi")
	c.mustKubectl(t, "", "delete", "pod", "db")
	c.mustKubectl(t, pod, "apply", "-f", "-")
	c.expectUnschedulable(t, "db", "2 node(s) did not have enough free storage")

	// One of them gets room.
	target := ""
	for _, node := range c.firstNodes(t, 3) {
		if node != home && target == "" {
			target = node
		}
	}
	c.mustKubectl(t, "", "delete", "pod", "on-"+target)
	c.mustKubectl(t, "", "delete", "persistentvolumeclaim", "on-"+target+"-0")
	c.expectReadyOn(t, "db", target)
	if after := sum(); after != before {
		t.Errorf("the data has the sum %s on %s, had %s on %s", after, target, before, home)
	}
	c.expectEvent(t, "CapacityAwareRescheduling", "PersistentVolumeClaim", "db-0")
	c.expectNoFailedProvision(t)
}

// nodeOf returns the node of a pod.
func (c *cluster) nodeOf(t *testing.T, pod string) string {
	t.Helper()
	p, err := c.CoreV1().Pods(c.Namespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Spec.NodeName
}
