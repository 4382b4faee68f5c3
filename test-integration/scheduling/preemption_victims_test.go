package scheduling

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/clustertest"
)

// TestVictimEndsWhileReserved: nothing but the reservation keeps the pod from its
// nominated node. It waits for the refresh; it does not preempt on another node.
func TestVictimEndsWhileReserved(t *testing.T) {
	c, driver := startNomination(t)
	c.DeletePod(clustertest.Pod{Name: "victim-on-node-1"})
	c.Eventually(func(ctx context.Context) error {
		pod, err := c.Client().CoreV1().Pods(c.Namespace).Get(ctx, "preemptor", metav1.GetOptions{})
		if err == nil && strings.Contains(pod.Status.Conditions[0].Message, "terminating pod") {
			err = errors.New("the scheduler has not tried the pod since the victim ended")
		}
		return err
	})
	expectSpared(c, "victim-on-node-2")

	driver.Publish()
	c.ExpectNode("preemptor", "node-1")
	expectSpared(c, "victim-on-node-2")
	expectNoFailures(c, driver)
}
