package rescheduling

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"capacityv2.internal/test-integration/clustertest"
)

// selectedNode is where the scheduler writes its decision.
const selectedNode = "volume.kubernetes.io/selected-node"

// history is what a claim has been.
type history struct {
	volume string

	mutex    sync.Mutex
	versions []*corev1.PersistentVolumeClaim
	deleted  bool
}

// observe watches a claim from when it is bound.
func observe(c *clustertest.Cluster, claim string) *history {
	c.Helper()
	var now *corev1.PersistentVolumeClaim
	c.Eventually(func(context.Context) error {
		if now = c.Claim(claim); now.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s, want it bound", claim, now.Status.Phase)
		}
		return nil
	})
	watcher, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Watch(c, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, claim).String(),
		ResourceVersion: now.ResourceVersion,
	})
	c.ExpectNoError(err, "watch claim")
	c.Cleanup(watcher.Stop)
	h := &history{volume: now.Spec.VolumeName, versions: []*corev1.PersistentVolumeClaim{now}}
	go func() {
		for event := range watcher.ResultChan() {
			h.mutex.Lock()
			if version, ok := event.Object.(*corev1.PersistentVolumeClaim); ok {
				h.versions = append(h.versions, version)
			}
			h.deleted = h.deleted || event.Type == watch.Deleted
			h.mutex.Unlock()
		}
	}()
	return h
}

// expect checks that the claim was bound to its volume all the time, and that these
// nodes were selected for it, one after the other, beginning with that at the
// start.
func (h *history) expect(c *clustertest.Cluster, nodes ...string) {
	c.Helper()
	name := h.versions[0].Name
	now := c.Claim(name)
	c.Eventually(func(context.Context) error {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		if last := h.versions[len(h.versions)-1]; last.ResourceVersion != now.ResourceVersion {
			return fmt.Errorf("version %s of claim %s was not observed, only up to %s", now.ResourceVersion, name, last.ResourceVersion)
		}
		return nil
	})
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.deleted {
		c.Errorf("claim %s was deleted", name)
	}
	var selected []string
	for _, version := range h.versions {
		if version.Status.Phase != corev1.ClaimBound || version.Spec.VolumeName != h.volume || version.UID != now.UID {
			c.Errorf("claim %s was %s to %q, want it bound to %q all the time", name, version.Status.Phase, version.Spec.VolumeName, h.volume)
		}
		if node := version.Annotations[selectedNode]; len(selected) == 0 || selected[len(selected)-1] != node {
			selected = append(selected, node)
		}
	}
	if got, want := strings.Join(selected, ", "), strings.Join(nodes, ", "); got != want {
		c.Errorf("nodes that were selected for claim %s: %s; want: %s", name, got, want)
	}
	volume := c.Volume(name)
	if volume.Status.Phase != corev1.VolumeBound || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != now.UID {
		c.Errorf("volume %s is %s to %v, want it bound to claim %s", volume.Name, volume.Status.Phase, volume.Spec.ClaimRef, name)
	}
}

// expectUntouched checks that nobody has written the claim.
func (h *history) expectUntouched(c *clustertest.Cluster) {
	c.Helper()
	before := h.versions[0]
	if now := c.Claim(before.Name); now.ResourceVersion != before.ResourceVersion {
		c.Errorf("claim %s has changed: %v is now %v", before.Name, before, now)
	}
}

// expectAffinity waits until the volume of a claim can be used on this node only,
// or on all nodes if it is empty.
func expectAffinity(c *clustertest.Cluster, claim, node string) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		got := ""
		if affinity := c.Volume(claim).Spec.NodeAffinity; affinity != nil {
			got = affinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
		}
		if got != node {
			return fmt.Errorf("node affinity of the volume of claim %s is for %q, want %q", claim, got, node)
		}
		return nil
	})
}

// expectEvents waits until there are these events of the scheduler about
// rescheduling, "Kind/name: note" with the beginning of the note.
func expectEvents(c *clustertest.Cluster, want ...string) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		list, err := c.Client().EventsV1().Events(c.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("reason", "CapacityAwareRescheduling").String(),
		})
		if err != nil {
			return err
		}
		found := map[string]bool{}
		for _, event := range list.Items {
			got := fmt.Sprintf("%s/%s: %s", event.Regarding.Kind, event.Regarding.Name, event.Note)
			ok := event.Series == nil
			for _, prefix := range want {
				if strings.HasPrefix(got, prefix) {
					ok, found[prefix] = ok && !found[prefix], true
				}
			}
			if !ok {
				return fmt.Errorf("event %q, want it once at most", got)
			}
		}
		if len(found) != len(want) || len(list.Items) != len(want) {
			return fmt.Errorf("%d events, want %d: %q", len(list.Items), len(want), want)
		}
		return nil
	})
}
