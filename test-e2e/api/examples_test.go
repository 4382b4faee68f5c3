// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStoryManifests checks that the API server takes the manifests of the KEP's stories
// as they are. What becomes of the stories is in test-e2e/storagecapacity.
func TestStoryManifests(t *testing.T) {
	c := connect(t)
	for _, story := range []string{"story-1", "story-2", "story-3"} {
		c.mustKubectl(t, c.readExample(t, story+".yaml", story), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	}
}

// TestTooLarge follows the README: a pod with two volumes of 100Gi fits on no node, although there is
// one with 250Gi. A cluster without nodes gets the one of the examples.
func TestTooLarge(t *testing.T) {
	c := connect(t)
	if os.Getenv("CAPACITYV2_CLUSTER_MODE") == "control-plane" {
		c.mustKubectl(t, c.readExample(t, "node1.yaml"), "apply", "-f", "-")
		c.cleanup(t, "node", func(ctx context.Context) error {
			return c.CoreV1().Nodes().Delete(ctx, "node1", metav1.DeleteOptions{})
		})
	}
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.applyExample(t)
	c.mustKubectl(t, c.readExample(t, "too-large.yaml", "three-pools"), "apply", "-f", "-")
	want := fmt.Sprintf("0/%d nodes are available: %d node(s) did not have enough free storage", len(nodes.Items), len(nodes.Items))
	eventually(t, time.Minute, func() error {
		pod, err := c.CoreV1().Pods(c.Namespace).Get(t.Context(), "too-large", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, cond := range pod.Status.Conditions {
			if cond.Type == corev1.PodScheduled && strings.Contains(cond.Message, want) {
				return nil
			}
		}
		return fmt.Errorf("want %q, got node %q, conditions %v", want, pod.Spec.NodeName, pod.Status.Conditions)
	})
}

// readExample returns a file of docs/examples. Names that contain one of those
// to replace get this test's suffix.
func (c *cluster) readExample(t *testing.T, file string, names ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs", "examples", file))
	if err != nil {
		t.Fatal(err)
	}
	var replace []string
	for _, name := range names {
		replace = append(replace, name, name+"-"+c.Suffix)
	}
	return strings.NewReplacer(replace...).Replace(string(b))
}

// applyExample applies the example of the README, with names that are this test's own, and removes what has no namespace
// when the test has ended.
func (c *cluster) applyExample(t *testing.T) (capacity string) {
	t.Helper()
	c.mustKubectl(t, c.readExample(t, "three-pools.yaml", "pools", "three-pools"), "apply", "-f", "-")
	class, driver := "three-pools-"+c.Suffix, "pools-"+c.Suffix+".csi.example.com"
	c.cleanup(t, "driver "+driver, func(ctx context.Context) error {
		if err := c.StorageV1().StorageClasses().Delete(ctx, class, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return c.StorageV1().CSIDrivers().Delete(ctx, driver, metav1.DeleteOptions{})
	})
	return class + "-node1"
}
