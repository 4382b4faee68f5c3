// SPDX-License-Identifier: Apache-2.0

package rescheduling

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/clustertest"
)

// expectAttached waits until the only VolumeAttachment is for the volume of app
// on this node, and the driver has attached it.
func expectAttached(c *clustertest.Cluster, node string) {
	c.Helper()
	volume := c.Volume(app.Claims[0]).Name
	c.Eventually(func(ctx context.Context) error {
		list, err := c.Client().StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Spec.NodeName != node || *list.Items[0].Spec.Source.PersistentVolumeName != volume || !list.Items[0].Status.Attached {
			return fmt.Errorf("attachments: %v, want %s attached to %s", list.Items, volume, node)
		}
		return nil
	})
}

// TestAttach: the attach-detach controller asks the driver for the volume on the
// new node.
func TestAttach(t *testing.T) { clustertest.ForAnyPolicy(t, testAttach) }

func testAttach(t *testing.T, options clustertest.Options) {
	c := start(t, options)
	createNodes(c, 3)
	config := local([]int64{100}, []int64{99}, []int64{99})
	config.AttachRequired = true
	driver := c.StartDriver(config)
	c.StartAttachDetach()
	startApp(c, "100Gi")
	expectAttached(c, "node-1")
	data := observe(c, "data-app-0")

	drain(c)
	c.CreatePod(app)
	c.ExpectNoRoom(app.Name, 2)
	driver.Resize("node-3", 0, 1<<30)
	c.ExpectNode(app.Name, "node-3")
	expectAttached(c, "node-3")
	data.expect(c, "node-1", "node-3")
	expectVolumes(c, driver, 0, 0, 1)
}
