// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const selectedNode = "volume.kubernetes.io/selected-node"

// Timeline is a record of what happens to the pods and claims of a namespace.
type Timeline struct {
	mutex sync.Mutex
	// changes are those of the places of a node that claims have taken, in order.
	changes []change
	pods    map[string]*podTimes
	// old are pods that do not count any more.
	old sets.Set[types.UID]
	// sentBack is how often the provisioner had no room and gave a claim back.
	sentBack int
	// refused are pods whose volumes a node had no room to rebuild.
	refused sets.Set[types.UID]
	// node is where a claim is sent now, by its UID.
	node map[types.UID]string
}

// change is a claim that begins (+1) or ends (-1) to take a place.
type change struct {
	at    time.Time
	node  string
	delta int
}

type podTimes struct {
	uid                                types.UID
	created, decided, running, deleted time.Time
}

// Restart forgets the pods that there are, and what had no room, not what is taken.
func (tl *Timeline) Restart() {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	for _, p := range tl.pods {
		tl.old.Insert(p.uid)
	}
	tl.pods, tl.sentBack, tl.refused = map[string]*podTimes{}, 0, sets.New[types.UID]()
}

// Record starts to record the namespace, until ctx ends.
func (c *Cluster) Record(ctx context.Context) (*Timeline, error) {
	tl := &Timeline{pods: map[string]*podTimes{}, old: sets.New[types.UID](), refused: sets.New[types.UID](), node: map[types.UID]string{}}
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(c.Namespace))
	claims, pods := factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().Pods().Informer()
	if _, err := factory.Core().V1().Events().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tl.event, UpdateFunc: func(_, obj any) { tl.event(obj) },
	}); err != nil {
		return nil, err
	}
	if _, err := claims.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tl.claim(obj.(*corev1.PersistentVolumeClaim), false) },
		UpdateFunc: func(_, obj any) { tl.claim(obj.(*corev1.PersistentVolumeClaim), false) },
		DeleteFunc: func(obj any) {
			if claim, ok := last(obj).(*corev1.PersistentVolumeClaim); ok {
				tl.claim(claim, true)
			}
		},
	}); err != nil {
		return nil, err
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tl.pod(obj.(*corev1.Pod), false) },
		UpdateFunc: func(_, obj any) { tl.pod(obj.(*corev1.Pod), false) },
		DeleteFunc: func(obj any) {
			if pod, ok := last(obj).(*corev1.Pod); ok {
				tl.pod(pod, true)
			}
		},
	}); err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return tl, nil
}

// last returns the last state of an object that was deleted, maybe while nobody watched.
func last(obj any) any {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return unknown.Obj
	}
	return obj
}

func (tl *Timeline) claim(claim *corev1.PersistentVolumeClaim, gone bool) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	now, before, node := time.Now(), tl.node[claim.UID], claim.Annotations[selectedNode]
	if gone {
		node = ""
	}
	if node == before {
		return
	}
	if before != "" {
		tl.changes = append(tl.changes, change{now, before, -1})
	}
	if node != "" {
		tl.changes = append(tl.changes, change{now, node, 1})
		tl.times(podOf(claim.Name)).decided = now
		if before != "" && claim.Spec.VolumeName == "" {
			tl.sentBack++ // while nobody watched
		}
	} else if !gone {
		tl.sentBack++
		tl.times(podOf(claim.Name)).decided = time.Time{}
	}
	tl.node[claim.UID] = node
}

func (tl *Timeline) pod(pod *corev1.Pod, gone bool) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	if tl.old.Has(pod.UID) {
		return
	}
	times := tl.times(pod.Name)
	if times.uid != "" && times.uid != pod.UID {
		if gone {
			return
		}
		times = &podTimes{} // the next one of a StatefulSet
		tl.pods[pod.Name] = times
	}
	if times.created.IsZero() {
		times.created, times.uid = time.Now(), pod.UID
	}
	// The claim tells earlier, unless its volume may be anywhere.
	if pod.Spec.NodeName != "" && times.decided.IsZero() {
		times.decided = time.Now()
	}
	if gone && times.deleted.IsZero() {
		times.deleted = time.Now()
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && times.running.IsZero() {
			times.running = time.Now()
		}
	}
}

func (tl *Timeline) times(name string) *podTimes {
	if tl.pods[name] == nil {
		tl.pods[name] = &podTimes{}
	}
	return tl.pods[name]
}

// Running is how many pods have run, and are not deleted.
func (tl *Timeline) Running() (n int) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	for _, p := range tl.pods {
		if !p.running.IsZero() && p.deleted.IsZero() {
			n++
		}
	}
	return n
}

// SentBack is how often the provisioner had no room for a volume.
func (tl *Timeline) SentBack() int {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	return tl.sentBack
}

// Left is how many pods have never run, and are not deleted.
func (tl *Timeline) Left() (n int) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	for _, p := range tl.pods {
		if p.running.IsZero() && p.deleted.IsZero() {
			n++
		}
	}
	return n
}

// event notes what the kubelet says of volumes that could not be rebuilt.
func (tl *Timeline) event(obj any) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	event := obj.(*corev1.Event)
	if event.Reason == "FailedMount" && strings.Contains(event.Message, "code = ResourceExhausted") && !tl.old.Has(event.InvolvedObject.UID) {
		tl.refused.Insert(event.InvolvedObject.UID)
	}
}
