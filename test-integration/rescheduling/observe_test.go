// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// selectedNode is where the scheduler writes its decision.
const selectedNode = "volume.kubernetes.io/selected-node"

// homeNodes is where a driver says which nodes have the data of a released volume.
const homeNodes = "pv.kubernetes.io/home-nodes"

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

// send sends the claim of app to a node, as another scheduler does, or its author.
func send(c *clustertest.Cluster, node string) {
	c.Helper()
	_, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Patch(c, app.Claims[0], types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, selectedNode, node), metav1.PatchOptions{})
	c.ExpectNoError(err, "change selected node")
}

// expectUntouched checks that nobody has written the claim.
func (h *history) expectUntouched(c *clustertest.Cluster) {
	c.Helper()
	before := h.versions[0]
	if now := c.Claim(before.Name); now.ResourceVersion != before.ResourceVersion {
		c.Errorf("claim %s has changed: %v is now %v", before.Name, before, now)
	}
}

// expectAffinity waits until the volume of app can be used on these nodes only.
func expectAffinity(c *clustertest.Cluster, nodes ...string) {
	c.Helper()
	expectPlace(c, fmt.Sprintf("usable on %q", nodes))
}

// expectReleased waits until the volume of app can be used anywhere, its driver says
// that these nodes have the data, as they are now, and the scheduler knows that.
func expectReleased(c *clustertest.Cluster, nodes ...string) {
	c.Helper()
	expectPlace(c, releasedFrom(c, nodes...))
	c.WaitForVolume(app.Claims[0])
}

func releasedFrom(c *clustertest.Cluster, nodes ...string) string {
	c.Helper()
	homes := []string{}
	for _, name := range nodes {
		node, err := c.Client().CoreV1().Nodes().Get(c, name, metav1.GetOptions{})
		c.ExpectNoError(err, "get node")
		homes = append(homes, fmt.Sprintf("%s=%s", name, node.UID))
	}
	return fmt.Sprintf("released from %q", strings.Join(homes, ","))
}

func expectPlace(c *clustertest.Cluster, want string) {
	c.Helper()
	c.Eventually(func(context.Context) error { return placeIs(c, want) })
}

// placeIs returns an error if the PersistentVolume of app says something else about where it is.
func placeIs(c *clustertest.Cluster, want string) error {
	c.Helper()
	volume := c.Volume(app.Claims[0])
	homes, known := volume.Annotations[homeNodes]
	got := fmt.Sprintf("released from %q", homes)
	if affinity := volume.Spec.NodeAffinity; affinity != nil {
		var nodes []string
		for _, term := range affinity.Required.NodeSelectorTerms {
			nodes = append(nodes, term.MatchExpressions[0].Values...)
		}
		got = fmt.Sprintf("usable on %q", nodes)
		if !modeldriver.IsConfirmed(volume) {
			got += ", unless the claim was sent elsewhere"
		}
	}
	if known == (volume.Spec.NodeAffinity != nil) || got != want {
		return fmt.Errorf("the volume is %s (home nodes: %t), want %s", got, known, want)
	}
	return nil
}

// expectCopies waits until these nodes have copies of the volume of app, complete or not.
func expectCopies(c *clustertest.Cluster, driver *modeldriver.Driver, want ...string) {
	c.Helper()
	handle := c.Volume(app.Claims[0]).Spec.CSI.VolumeHandle
	c.Eventually(func(context.Context) error {
		if got := driver.Copies(handle); !slices.Equal(got, want) {
			return fmt.Errorf("copies of the volume: %v, want %v", got, want)
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
