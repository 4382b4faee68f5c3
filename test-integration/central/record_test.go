package central

import (
	"fmt"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/capacity"

	"capacityv2.internal/test-integration/clustertest"
)

// record is what was written about capacity.
type record struct {
	mutex  sync.Mutex
	shown  map[string]bool // objects that are there
	writes int
	listed map[types.UID]time.Time // claims, since a report has listed them
}

func startRecord(c *clustertest.Cluster) *record {
	c.Helper()
	r := &record{shown: map[string]bool{}, listed: map[types.UID]time.Time{}}
	factory := informers.NewSharedInformerFactory(c.Client(), 0)
	_, err := factory.Storage().V1().CSIStorageCapacities().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.write,
		UpdateFunc: func(_, obj any) { r.write(obj) },
	})
	c.ExpectNoError(err, "watch capacity")
	factory.StartWithContext(c)
	factory.WaitForCacheSyncWithContext(c)
	return r
}

func (r *record) write(obj any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	object := obj.(*storagev1.CSIStorageCapacity)
	r.shown[object.Name] = true
	r.writes++
	confirmation, err := capacity.ConfirmationOf(object)
	if err != nil || confirmation == nil {
		return
	}
	for _, claim := range confirmation.Claims {
		if _, ok := r.listed[claim]; !ok {
			r.listed[claim] = time.Now()
		}
	}
}

func (r *record) restart() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.writes = 0
}

// waitForAll waits until there is an object for each node.
func (r *record) waitForAll(c *clustertest.Cluster) {
	c.Helper()
	r.wait(c, func() int { return len(r.shown) }, nodes, "objects")
}

// waitForConfirmations waits until so many claims are listed.
func (r *record) waitForConfirmations(c *clustertest.Cluster, claims int) {
	c.Helper()
	r.wait(c, func() int { return len(r.listed) }, claims, "confirmed claims")
}

func (r *record) wait(c *clustertest.Cluster, count func() int, want int, what string) {
	c.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		r.mutex.Lock()
		n := count()
		r.mutex.Unlock()
		if n >= want {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("%d %s after %v, want %d", n, what, limit, want)
		}
	}
}

// evaluate returns the writes for each volume that was created, and the median of the times from a
// volume to the report that lists it.
func (r *record) evaluate(created map[string]time.Time) (writes float64, confirmed string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var times []time.Duration
	for claim, at := range r.listed {
		// As external-provisioner names volumes.
		if since, ok := created[fmt.Sprintf("pvc-%s", claim)]; ok {
			times = append(times, at.Sub(since))
		}
	}
	return float64(r.writes) / float64(max(1, len(created))), median(times)
}
