package scheduling

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestSchedulerRestart: reservations do not survive the scheduler, so a new one may
// send pods to room that the old one has given away: at most one for each claim
// whose volume is not in the published numbers yet.
func TestSchedulerRestart(t *testing.T) {
	c := clustertest.Start(ktesting.Init(t))
	c.CreateNodes(2)
	config := local([]int64{100}, []int64{100})
	// Less than the second after which the scheduler learns of a failure and lets
	// another pod use the object.
	config.RefreshDelay = 500 * time.Millisecond
	driver := c.StartDriver(config)

	const pods = 10
	for i := range pods {
		c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{"20Gi"}})
	}
	c.Eventually(func(context.Context) error {
		if n := driver.Provisioned(); n < 7 {
			return fmt.Errorf("%d volumes were created, want 7", n)
		}
		return nil
	})
	c.StopScheduler()
	expectNoFailures(c, driver)
	inFlight, err := claimsInFlight(c, 20<<30, 200<<30)
	c.ExpectNoError(err, "count claims in flight")
	if inFlight > 2 {
		t.Errorf("%d claims are in flight, want one for each node at most", inFlight)
	}
	c.StartScheduler()

	c.WaitForPlaced(pods)
	t.Logf("%d claims were in flight, %d volumes were asked for where there was no room", inFlight, driver.Failed())
	if driver.Failed() > inFlight {
		t.Errorf("%d volumes were asked for where there was no room, want %d at most", driver.Failed(), inFlight)
	}
	if got := driver.Volumes(); !slices.Equal(got, []int{5, 5}) {
		t.Errorf("volumes of the nodes: %v, want 5 each", got)
	}
}

// claimsInFlight returns the number of claims of this size for which the scheduler
// has chosen a node, and whose volumes are not in the published numbers.
func claimsInFlight(c *clustertest.Cluster, size, total int64) (int, error) {
	capacities, err := c.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).List(c, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	claims, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).List(c, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, claim := range claims.Items {
		if claim.Annotations["volume.kubernetes.io/selected-node"] != "" {
			n++
		}
	}
	for _, capacity := range capacities.Items {
		total -= capacity.Capacity.Value()
	}
	return n - int(total/size), nil
}
