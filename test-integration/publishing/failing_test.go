// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// size is that of the volumes here.
var size = fmt.Sprintf("%dGi", volumeSize)

// startFailing starts a control plane with some nodes, a driver that fails as prepare says, and the
// provisioner that confirms.
func startFailing(
	t *testing.T, nodes int, prepare func(*modeldriver.Driver), flags ...string,
) (*clustertest.Cluster, *modeldriver.Driver) {
	t.Helper()
	// No timeout ends a reservation while the driver fails.
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{ReservationTimeout: 600})
	d := createDriver(c, nodes, places*volumeSize<<30, class)
	prepare(d)
	startProvisioner(c, d, variant{qps: 20}, c.RESTConfig(), flags...)
	expectPools(c, nodes, places*volumeSize<<30)
	return c, d
}

// expectPools waits until so many objects show one pool with so many bytes.
func expectPools(c *clustertest.Cluster, nodes int, bytes int64) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		objects, err := c.Client().StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		n := 0
		for _, o := range objects.Items {
			if o.Capacity != nil && o.Capacity.Value() == bytes && len(o.AvailableCapacities) == 1 && o.AvailableCapacities[0].Value() == bytes {
				n++
			}
		}
		if n != nodes {
			return fmt.Errorf("%d objects show a pool with %d bytes, want %d", n, bytes, nodes)
		}
		return nil
	})
}

// TestCreationsThatFail: a volume that the driver cannot create a thousand times takes its room
// once, and all the time.
func TestCreationsThatFail(t *testing.T) {
	const failures = 1000
	var calls atomic.Int64
	c, d := startFailing(t, 1, func(d *modeldriver.Driver) {
		d.BeforeCreate = func(context.Context, string) error {
			if calls.Add(1) <= failures {
				return status.Error(codes.Internal, "the disk does not answer")
			}
			return nil
		}
	}, "--retry-interval-start=1ms", "--retry-interval-max=2ms")
	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{size}})
	watched, stop := context.WithCancel(c)
	defer stop()
	wrong := make(chan error, 1)
	go func() { wrong <- watch(watched, c, func() bool { return calls.Load() <= failures }) }()
	if err := wait.PollUntilContextTimeout(c, time.Second, limit, true, func(context.Context) (bool, error) { return calls.Load() > failures, nil }); err != nil {
		c.Fatalf("%d creations have failed in %v, want %d", calls.Load(), limit, failures)
	}
	c.ExpectNode("first")
	stop()
	c.ExpectNoError(<-wrong)

	expectPools(c, 1, volumeSize<<30)
	c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{size}})
	c.ExpectNode("second")
	expectPools(c, 1, 0)
	c.CreatePod(clustertest.Pod{Name: "third", Class: class, Sizes: []string{"1Gi"}})
	c.ExpectNoRoom("third", 1)
	expectNothingInFlight(c)
	c.ExpectNoFailures(d)
}

// watch returns an error if the volume is not in flight once while its creation fails, from its first
// moment in flight on.
func watch(ctx context.Context, c *clustertest.Cluster, fails func() bool) error {
	wrong := errors.New("nothing was in flight while the creation failed")
	began := false
	_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		bytes := c.InFlight(class)
		switch {
		case !fails():
			return true, nil
		case bytes == volumeSize<<30:
			began, wrong = true, nil
		case began || bytes != 0:
			wrong = fmt.Errorf("%d bytes are in flight while the creation fails, want %d", bytes, volumeSize<<30)
			return true, nil
		}
		return false, nil
	})
	return wrong
}

// expectNothingInFlight waits until the scheduler reserves nothing.
func expectNothingInFlight(c *clustertest.Cluster) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		if bytes := c.InFlight(class); bytes != 0 {
			return fmt.Errorf("%d bytes are in flight, want 0", bytes)
		}
		return nil
	})
}

// TestCapacityCallsThatFail: GetCapacity takes a second, and every other call fails. Of ten pods
// that come at once, those run for which there is room, and no volume is asked for elsewhere.
func TestCapacityCallsThatFail(t *testing.T) {
	const nodes, pods = 3, 10
	var calls atomic.Int64
	c, d := startFailing(t, nodes, func(d *modeldriver.Driver) {
		// The numbers are a second old when the provisioner gets them.
		d.BeforeAnswer = func(context.Context) error {
			call := calls.Add(1)
			time.Sleep(time.Second)
			if call%2 == 0 {
				return status.Error(codes.Unavailable, "the storage does not answer")
			}
			return nil
		}
	})
	for i := range pods {
		c.CreatePod(clustertest.Pod{Name: fmt.Sprintf("pod-%d", i), Class: class, Sizes: []string{size}})
	}
	c.WaitForPlaced(nodes * places)
	expectPools(c, nodes, 0)
	expectNothingInFlight(c)
	placed, err := c.Placed(c)
	c.ExpectNoError(err)
	for i := range pods {
		if name := fmt.Sprintf("pod-%d", i); placed[name] == "" {
			c.ExpectNoRoom(name, nodes)
		}
	}
	expectFull(t, d)
	c.ExpectNoFailures(d)
}
