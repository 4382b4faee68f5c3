// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestReferenceDriverExample follows the example of the docs: the log of a pod that has
// moved has a line from each node.
func TestReferenceDriverExample(t *testing.T) {
	if os.Getenv("CAPACITYV2_DRIVER") == "" {
		t.Skip("this cluster has no reference driver (make up without DRIVER=reference)")
	}
	c := connect(t)
	manifest := c.readExample(t, "reference.yaml")
	c.mustKubectl(t, manifest, "apply", "-f", "-")
	home := c.expectReady(t, "writer").Spec.NodeName
	c.cleanup(t, "cordon", func(ctx context.Context) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, home, types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
		return err
	})
	c.mustKubectl(t, "", "cordon", home)
	c.mustKubectl(t, "", "delete", "pod", "writer")
	c.mustKubectl(t, manifest, "apply", "-f", "-")
	moved := c.expectReady(t, "writer").Spec.NodeName
	log := c.mustKubectl(t, "", "exec", "writer", "--", "cat", "/data/log")
	if moved == home || !strings.Contains(log, "started on "+home) || !strings.Contains(log, "started on "+moved) {
		t.Errorf("the pod has moved from %s to %s, and its log is %q", home, moved, log)
	}
}
