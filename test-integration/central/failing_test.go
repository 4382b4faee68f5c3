package central

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// size is that of the volumes here.
var size = fmt.Sprintf("%dGi", volumeSize)

// startFailing starts a control plane with some nodes, a driver that fails as prepare says, and the
// provisioner that confirms.
func startFailing(t *testing.T, nodes int, prepare func(*driver), flags ...string) (*clustertest.Cluster, *driver) {
	t.Helper()
	c := clustertest.Start(ktesting.Init(t))
	d := newDriver()
	for i := range nodes {
		d.createNode(c, fmt.Sprintf("node-%d", i+1), places*volumeSize<<30)
	}
	createClass(c)
	prepare(d)
	d.startProvisioner(c, variant{provisioner: "CSI_PROVISIONER", qps: 20}, c.RESTConfig(), flags...)
	expectPools(c, nodes, places*volumeSize<<30)
	return c, d
}

// expectPools waits until so many objects show one pool with so many bytes.
func expectPools(c *clustertest.Cluster, nodes int, bytes int64) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		objects, err := c.Client().StorageV1().CSIStorageCapacities(class).List(ctx, metav1.ListOptions{})
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
// once, and what is free never is below zero.
func TestCreationsThatFail(t *testing.T) {
	const failures = 1000
	c, d := startFailing(t, 1, func(d *driver) { d.failures = failures }, "--retry-interval-start=1ms", "--retry-interval-max=2ms")
	c.CreatePod(clustertest.Pod{Name: "first", Class: class, Sizes: []string{size}})
	watched, stop := context.WithCancel(c)
	defer stop()
	wrong := make(chan error, 1)
	go func() { wrong <- watch(watched, c) }()
	c.ExpectNode("first")
	stop()
	c.ExpectNoError(<-wrong)
	if d.mutex.Lock(); d.failures > 0 {
		t.Errorf("%d of %d creations have failed", failures-d.failures, failures)
	}
	d.mutex.Unlock()

	expectPools(c, 1, volumeSize<<30)
	c.CreatePod(clustertest.Pod{Name: "second", Class: class, Sizes: []string{size}})
	c.ExpectNode("second")
	expectPools(c, 1, 0)
	c.CreatePod(clustertest.Pod{Name: "third", Class: class, Sizes: []string{"1Gi"}})
	c.ExpectNoRoom("third", 1)
	expectNothingInFlight(c)
	if _, failed, _ := d.counts(); failed > 0 {
		t.Errorf("%d volumes were asked for where there was no room", failed)
	}
}

// watch returns an error if an object shows less than nothing, or if more is in flight than there
// is to create, until ctx ends.
func watch(ctx context.Context, c *clustertest.Cluster) error {
	var wrong error
	_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		objects, err := c.Client().StorageV1().CSIStorageCapacities(class).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, nil
		}
		for _, o := range objects.Items {
			if o.Capacity != nil && o.Capacity.Sign() < 0 {
				wrong = fmt.Errorf("%s has a capacity of %s", o.Name, o.Capacity)
			}
		}
		if bytes := c.InFlight(class); bytes > volumeSize<<30 {
			wrong = fmt.Errorf("%d bytes are in flight, want %d at most", bytes, volumeSize<<30)
		}
		return wrong != nil, nil
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
	c, d := startFailing(t, nodes, func(d *driver) {
		d.capacityFault = func(call int) error {
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
	if volumes, failed, _ := d.counts(); volumes != nodes*places || failed > 0 {
		t.Errorf("%d volumes were created, and %d asked for where there was no room, want %d and 0", volumes, failed, nodes*places)
	}
}
