package perf

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding/ledger"
	"k8s.io/utils/clock"
)

// heap returns the bytes that are in use.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// newObject returns the object of a class for a node, as an informer has it: decoded, so that
// it shares nothing with other objects.
func newObject(b *testing.B, class, node int) *storagev1.CSIStorageCapacity {
	b.Helper()
	sent := storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("csisc-%d-%d", class, node), Namespace: metav1.NamespaceDefault, UID: uuid.NewUUID(),
			ResourceVersion: fmt.Sprint(1000000 + node), CreationTimestamp: metav1.Now(),
		},
		StorageClassName:  className(class),
		NodeTopology:      &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%d", node)}},
		Capacity:          resource.NewQuantity(1000<<30, resource.BinarySI),
		MaximumVolumeSize: resource.NewQuantity(400<<30, resource.BinarySI),
	}
	for _, pool := range []int64{400, 300, 200, 100} {
		sent.AvailableCapacities = append(sent.AvailableCapacities, *resource.NewQuantity(pool<<30, resource.BinarySI))
	}
	data, err := sent.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	received := &storagev1.CSIStorageCapacity{}
	if err := received.Unmarshal(data); err != nil {
		b.Fatal(err)
	}
	return received
}

// BenchmarkObjectMemory measures what a scheduler keeps for each CSIStorageCapacity object: in
// the informer's cache, which it has without the series as well, in the indices of that cache by which
// objects are found with the gate off, and, with the gate on, in the ledger and in an index of its own.
func BenchmarkObjectMemory(b *testing.B) {
	for _, size := range []struct{ nodes, classes int }{{10000, 1}, {200, 50}, {5000, 50}, {15000, 50}} {
		count := size.nodes * size.classes
		b.Run(fmt.Sprintf("nodes=%d/classes=%d", size.nodes, size.classes), func(b *testing.B) {
			for b.Loop() {
				last := heap()
				// grown returns what came for each object since the last call.
				grown := func() float64 {
					before := last
					last = heap()
					return (last - before) / float64(count)
				}
				factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
				store := factory.Storage().V1().CSIStorageCapacities().Informer().GetIndexer()
				for node := range size.nodes {
					for class := range size.classes {
						if err := store.Add(newObject(b, class, node)); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(grown(), "cache-B/object")

				binder := newBinder(b, factory)
				b.ReportMetric(grown(), "gateoff-B/object")

				objects := slices.Clone(store.List())
				grown()
				entries := ledger.New(ledger.Options{Clock: clock.RealClock{}})
				for _, object := range objects {
					object := object.(*storagev1.CSIStorageCapacity)
					entries.SetObject(ledgerObject(object))
				}
				entries.Publish(func(types.UID, ledger.InFlight) {})
				entries.Wake()
				inLedger := grown()
				b.ReportMetric(inLedger, "ledger-B/object")
				runtime.KeepAlive(entries)
				entries = nil
				grown()

				ctx, cancel := context.WithCancel(b.Context())
				manager, err := volumebinding.NewCapacityManager(ctx, factory)
				if err != nil {
					b.Fatal(err)
				}
				for _, object := range objects {
					manager.OnAdd(object, true)
				}
				b.ReportMetric(grown()-inLedger, "index-B/object")
				cancel()
				runtime.KeepAlive(manager)
				runtime.KeepAlive(binder)
				runtime.KeepAlive(objects)
			}
			b.ReportMetric(float64(count), "objects")
		})
	}
}

// newBinder returns the part of the plugin that adds its indices to the cache.
func newBinder(b *testing.B, factory informers.SharedInformerFactory) volumebinding.SchedulerVolumeBinder {
	b.Helper()
	core, storage := factory.Core().V1(), factory.Storage().V1()
	binder, err := volumebinding.NewVolumeBinder(klog.Background(), nil, feature.Features{}, core.Pods(), core.Nodes(), storage.CSINodes(),
		core.PersistentVolumeClaims(), core.PersistentVolumes(), storage.StorageClasses(),
		volumebinding.CapacityCheck{CSIDriverInformer: storage.CSIDrivers(), CSIStorageCapacityInformer: storage.CSIStorageCapacities()}, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	return binder
}

// pools are the same for all objects: the index has them, and the ledger refers to these.
var pools = []int64{400 << 30, 300 << 30, 200 << 30, 100 << 30}

func ledgerObject(object *storagev1.CSIStorageCapacity) ledger.Object {
	return ledger.Object{
		UID: object.UID, Namespace: object.Namespace, Name: object.Name, Class: object.StorageClassName, Version: object.ResourceVersion,
		Matches: func(labels map[string]string) bool {
			return labels[corev1.LabelHostname] == object.NodeTopology.MatchLabels[corev1.LabelHostname]
		},
		Pools: ledger.Pools{Free: pools, Limit: 400 << 30}, Total: 1000 << 30,
	}
}

// BenchmarkEntryMemory measures what the ledger keeps for each volume in flight, and the informer's cache
// for the claim of that volume. Each entry is for another object.
func BenchmarkEntryMemory(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("entries=%d", count), func(b *testing.B) {
			for b.Loop() {
				nodeLabels, objects := map[string]map[string]string{}, map[string]types.UID{}
				options := ledger.Options{
					Clock: clock.RealClock{}, Timeout: time.Hour,
					Labels: func(node string) (map[string]string, bool) { return nodeLabels[node], true },
					Locate: func(_ string, labels map[string]string) []types.UID {
						return []types.UID{objects[labels[corev1.LabelHostname]]}
					},
					Volume:  func(types.UID) (ledger.Volume, bool) { return ledger.Volume{}, false },
					Changed: func(ledger.Entry, ledger.Reason) {},
				}
				entries := ledger.New(options)
				for i := range count {
					object := newObject(b, 0, i)
					nodeLabels[fmt.Sprintf("node-%d", i)] = object.NodeTopology.MatchLabels
					objects[object.NodeTopology.MatchLabels[corev1.LabelHostname]] = object.UID
					entries.SetObject(ledgerObject(object))
				}
				entries.Publish(func(types.UID, ledger.InFlight) {})
				entries.Wake()

				before := heap()
				claims := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				decisions := make([]ledger.Decision, count)
				for i := range count {
					claim := decodedClaim(b, i)
					if err := claims.Add(claim); err != nil {
						b.Fatal(err)
					}
					decisions[i].Volumes = []ledger.Claim{{UID: claim.UID, Namespace: claim.Namespace, Name: claim.Name, Class: *claim.Spec.StorageClassName, Version: claim.ResourceVersion, Bytes: 1 << 30}}
				}
				b.ReportMetric((heap()-before)/float64(count), "cache-B/claim")

				for i := range decisions {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uuid.NewUUID()}}
					decisions[i].Node, decisions[i].Pod = fmt.Sprintf("node-%d", i), ledger.Pod{Pod: pod, Claims: []types.UID{decisions[i].Volumes[0].UID}}
				}
				before = heap()
				for i := range decisions {
					entries.Reserve(decisions[i])
					entries.Send(decisions[i])
					entries.Publish(func(types.UID, ledger.InFlight) {})
				}
				b.ReportMetric((heap()-before)/float64(count), "ledger-B/entry")
				runtime.KeepAlive(claims)
				runtime.KeepAlive(decisions)
				runtime.KeepAlive(entries)
			}
		})
	}
}

// decodedClaim returns a claim as an informer has it.
func decodedClaim(b *testing.B, i int) *corev1.PersistentVolumeClaim {
	b.Helper()
	sent := newClaim(i, className(0))
	sent.Namespace, sent.UID, sent.ResourceVersion, sent.CreationTimestamp = namespace, uuid.NewUUID(), fmt.Sprint(2000000+i), metav1.Now()
	sent.Spec.VolumeMode, sent.Status.Phase = new(corev1.PersistentVolumeFilesystem), corev1.ClaimPending
	sent.Finalizers = []string{"kubernetes.io/pvc-protection"}
	data, err := sent.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	received := &corev1.PersistentVolumeClaim{}
	if err := received.Unmarshal(data); err != nil {
		b.Fatal(err)
	}
	return received
}
