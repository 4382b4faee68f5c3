// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// watched is a control plane without scheduler, whose capacity objects are observed while a provisioner publishes them.
// Each node has one pool, which all classes share.
type watched struct {
	*clustertest.Cluster
	driver  *modeldriver.Driver
	classes int

	mutex sync.Mutex
	shown map[string]int64 // bytes, by the names of objects
	// writes is how many versions of objects were seen.
	writes int
}

func startWatched(t *testing.T, nodes int, classes ...string) *watched {
	t.Helper()
	w := &watched{
		Cluster: clustertest.StartWith(ktesting.Init(t), clustertest.Options{NoScheduler: true}),
		classes: len(classes), shown: map[string]int64{},
	}
	w.driver = createDriver(w.Cluster, nodes, places*volumeSize<<30, classes...)
	factory := informers.NewSharedInformerFactory(w.Client(), 0)
	see := func(obj any) {
		o := obj.(*storagev1.CSIStorageCapacity)
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.writes++
		w.shown[o.Name] = o.Capacity.Value()
	}
	_, err := factory.Storage().V1().CSIStorageCapacities().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) },
	})
	w.ExpectNoError(err, "watch capacity")
	factory.StartWithContext(w)
	factory.WaitForCacheSyncWithContext(w)
	return w
}

// seen returns how many versions of objects were seen.
func (w *watched) seen() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.writes
}

// waitForShown waits until the objects of one node show so many bytes. Only one node may have as many.
func (w *watched) waitForShown(bytes int64) {
	w.Helper()
	w.Eventually(func(context.Context) error {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		n := 0
		for _, shown := range w.shown {
			if shown == bytes {
				n++
			}
		}
		if n < w.classes {
			return fmt.Errorf("%d objects show %d bytes, want %d", n, bytes, w.classes)
		}
		return nil
	})
}

// createVolume has a volume created on a node, in the first class, and returns when the objects show it.
func (w *watched) createVolume(name, node string) {
	w.Helper()
	_, err := w.Client().CoreV1().PersistentVolumeClaims(w.Namespace).Create(w, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{volume.AnnSelectedNode: node}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}, metav1.CreateOptions{})
	w.ExpectNoError(err, "create claim")
	w.Eventually(func(context.Context) error {
		if claim := w.Claim(name); claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is %s", name, claim.Status.Phase)
		}
		return nil
	})
	w.waitForShown(w.driver.Free(node)[0])
}

// settle is how long nothing more has to come after the last volume was shown. It is longer than the poll
// interval in the test.
const settle = 2 * time.Second

// TestWatchTraffic: with a confirmation, one watcher gets at most two events for each volume and class: one when the volume is
// there, and one when the controller of volumes has written it, because that may be the first version that a scheduler sees.
func TestWatchTraffic(t *testing.T) {
	const nodes, classes, volumes = 10, 2, 30
	w := startWatched(t, nodes, class, class+"-2")
	for i := range nodes {
		w.driver.SetPools(fmt.Sprintf("node-%d", i+1), int64(i+1)<<40)
	}
	startProvisioner(w.Cluster, w.driver, variant{qps: 200}, w.RESTConfig(), "--capacity-poll-interval=1s")
	for i := range nodes {
		w.waitForShown(int64(i+1) << 40)
	}
	expectPools(w.Cluster, classes, 1<<40)
	before := w.seen()
	for i := range volumes {
		w.createVolume(fmt.Sprintf("volume-%d", i), fmt.Sprintf("node-%d", i%nodes+1))
	}
	time.Sleep(settle)
	if got := w.seen() - before; got < volumes || got > 2*classes*volumes {
		t.Errorf("%d events for %d volumes of drivers with %d classes, want two for each volume and class at most", got, volumes, classes)
	}
	w.ExpectNoFailures(w.driver)
}
