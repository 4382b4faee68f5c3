package central

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/capacity"
	"k8s.io/component-helpers/storage/volume"

	"capacityv2.internal/test-integration/clustertest"
)

// record is what was written about capacity, and of volumes. All of them are of one class.
type record struct {
	mutex  sync.Mutex
	writes int
	// objects are those that are there, by their nodes, and volumes those that there were, by
	// their names, as they were when they were seen first.
	objects map[string]*storagev1.CSIStorageCapacity
	volumes map[string]*corev1.PersistentVolume
	// confirmed is since when the object of its node confirms a volume.
	confirmed map[string]time.Time
}

func startRecord(c *clustertest.Cluster) *record {
	c.Helper()
	r := &record{objects: map[string]*storagev1.CSIStorageCapacity{}, volumes: map[string]*corev1.PersistentVolume{}, confirmed: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactory(c.Client(), 0)
	_, err := factory.Storage().V1().CSIStorageCapacities().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.write,
		UpdateFunc: func(_, obj any) { r.write(obj) },
	})
	c.ExpectNoError(err, "watch capacity")
	_, err = factory.Core().V1().PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: r.create})
	c.ExpectNoError(err, "watch volumes")
	factory.StartWithContext(c)
	factory.WaitForCacheSyncWithContext(c)
	return r
}

func (r *record) write(obj any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	object := obj.(*storagev1.CSIStorageCapacity)
	node := object.NodeTopology.MatchLabels[nodeLabel]
	r.objects[node] = object
	r.writes++
	for _, pv := range r.volumes {
		r.confirm(pv, node)
	}
}

// create may come after the object that confirms the volume: it is another watch.
func (r *record) create(obj any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	pv := obj.(*corev1.PersistentVolume)
	r.volumes[pv.Name] = pv
	for node := range r.objects {
		r.confirm(pv, node)
	}
}

// confirm notes a volume that the object of a node confirms.
func (r *record) confirm(pv *corev1.PersistentVolume, node string) {
	if _, known := r.confirmed[pv.Name]; known || volume.CheckNodeAffinity(pv, map[string]string{nodeLabel: node}) != nil {
		return
	}
	reflected, err := capacity.ReflectedVolumes(r.objects[node])
	if err != nil || reflected == "" {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(pv.ResourceVersion, reflected); err == nil && order <= 0 {
		r.confirmed[pv.Name] = time.Now()
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
	r.wait(c, func() int { return len(r.objects) }, nodes, "objects")
}

// waitForConfirmations waits until so many volumes are confirmed.
func (r *record) waitForConfirmations(c *clustertest.Cluster, volumes int) {
	c.Helper()
	r.wait(c, func() int { return len(r.confirmed) }, volumes, "confirmed volumes")
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
// volume to the report that confirms it.
func (r *record) evaluate(created map[string]time.Time) (writes float64, confirmed string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var times []time.Duration
	for name, at := range r.confirmed {
		if since, ok := created[name]; ok {
			times = append(times, at.Sub(since))
		}
	}
	return float64(r.writes) / float64(max(1, len(created))), median(times)
}
