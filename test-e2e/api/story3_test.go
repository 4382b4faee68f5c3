package api

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"capacityv2.internal/test-integration/modeldriver"
	"capacityv2.internal/test-integration/nodeplugin"
)

// TestStory3 checks the KEP's third story, with the manifest of the docs: the node
// of a pod is drained, and the pod with its bound claim waits until another node has
// room, and goes there.
func TestStory3(t *testing.T) {
	const pod, claim = "database-0", "data-database-0"
	requireNodes(t)
	c := connect(t)
	nodes := c.firstNodes(t, 3)
	class := "story-3-" + c.Suffix
	name := class + ".csi.example.com"

	var started atomic.Pointer[modeldriver.Driver]
	has := func(volume, node string) bool { return started.Load() != nil && started.Load().Has(volume, node) }
	stop, err := nodeplugin.StartAll(name, filepath.Dir(filepath.Dir(c.kubeconfig)), has, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	c.cleanup(t, "node plugins", func(context.Context) error { return stop() })
	config := modeldriver.Config{Name: name, Classes: []string{class}, Rebuilding: true, RefreshDelay: time.Second}
	for i, size := range []int64{10, 100, 100} {
		config.Segments = append(config.Segments, modeldriver.Segment{Labels: onNode(nodes[i]), Pools: modeldriver.GiB(size)})
	}
	driver := c.startDriver(t, config)
	started.Store(driver)

	c.mustKubectl(t, c.readExample(t, "story-3.yaml", "story-3"), "apply", "-f", "-")
	c.expectReadyOn(t, "batch", "node3")
	c.expectReadyOn(t, pod, "node2")
	stillBound := c.watchBound(t, claim)
	before := c.schedulerCounter(t, "scheduler_volume_binding_rescheduling_events_total")

	c.cleanup(t, "cordon", func(ctx context.Context) error { return c.setSchedulable(ctx, "node2") })
	c.mustKubectl(t, "", "drain", "node2", "--ignore-daemonsets", "--timeout=50s")
	c.expectNoRoom(t, pod)
	if _, err := c.claimOnNode(t, claim, "node2"); err != nil {
		t.Error(err)
	}

	c.mustKubectl(t, "", "delete", "pod", "batch")
	c.expectReadyOn(t, pod, "node3")
	if _, err := c.claimOnNode(t, claim, "node3"); err != nil {
		t.Error(err)
	}
	volume := stillBound()
	eventually(t, time.Minute, func() error {
		const path = "jsonpath={.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values[*]}"
		if got := c.mustKubectl(t, "", "get", "persistentvolume", volume, "-o", path); got != "node3" {
			return fmt.Errorf("the volume's node affinity has %q, want node3", got)
		}
		return nil
	})
	for kind, object := range map[string]string{"Pod": pod, "PersistentVolumeClaim": claim} {
		c.expectEvent(t, "CapacityAwareRescheduling", kind, object)
	}
	if after := c.schedulerCounter(t, "scheduler_volume_binding_rescheduling_events_total"); after != before+1 {
		t.Errorf("the metric went from %v to %v, want one more", before, after)
	}
	if driver.Failed() > 0 {
		t.Errorf("%d volumes were asked for where there was no room, want none", driver.Failed())
	}
}

// onNode returns the label that a node has alone.
func onNode(name string) map[string]string { return map[string]string{corev1.LabelHostname: name} }
