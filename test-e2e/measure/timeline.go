package measure

import (
	"context"
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

// Restart forgets the pods that there are and what was sent back, not what is taken.
func (tl *Timeline) Restart() {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	for _, p := range tl.pods {
		tl.old.Insert(p.uid)
	}
	tl.pods, tl.sentBack = map[string]*podTimes{}, 0
}

// Record starts to record the namespace, until ctx ends.
func (c *Cluster) Record(ctx context.Context) (*Timeline, error) {
	tl := &Timeline{pods: map[string]*podTimes{}, old: sets.New[types.UID](), node: map[types.UID]string{}}
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(c.Namespace))
	claims, pods := factory.Core().V1().PersistentVolumeClaims().Informer(), factory.Core().V1().Pods().Informer()
	if _, err := claims.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tl.claim(obj.(*corev1.PersistentVolumeClaim), false) },
		UpdateFunc: func(_, obj any) { tl.claim(obj.(*corev1.PersistentVolumeClaim), false) },
		DeleteFunc: func(obj any) {
			if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
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
			if pod, ok := obj.(*corev1.Pod); ok {
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

// Decided is how many pods have a node.
func (tl *Timeline) Decided() (n int) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	for _, p := range tl.pods {
		if !p.decided.IsZero() {
			n++
		}
	}
	return n
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

// Result is what a run of a scenario comes down to. Times are in seconds.
type Result struct {
	// Failed is how many volumes were asked for where there was no room.
	Failed int
	// Decided is when the last pod had a node, Running when the last one ran, both
	// from the creation of the first. Left is how many pods never ran.
	Decided, Running float64
	Left             int
	// Lost is how many pods had other data after they were moved.
	Lost int `json:",omitempty"`
	// Wait is the longest time that a pod had no node while a node had room for it.
	Wait float64
}

// Result evaluates the record for pods with one volume each: places is how many volumes
// fit on each node.
func (tl *Timeline) Result(places map[string]int, end time.Time) Result {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	r := Result{Failed: tl.sentBack}
	var first, decided, running time.Time
	for _, p := range tl.pods {
		if first.IsZero() || p.created.Before(first) {
			first = p.created
		}
		if p.decided.After(decided) {
			decided = p.decided
		}
		if p.running.After(running) {
			running = p.running
		}
		if p.running.IsZero() && p.deleted.IsZero() {
			r.Left++
		}
	}
	r.Decided, r.Running = decided.Sub(first).Seconds(), running.Sub(first).Seconds()
	for _, p := range tl.pods {
		until := p.decided
		if until.IsZero() {
			until = end
			if !p.deleted.IsZero() {
				until = p.deleted
			}
		}
		r.Wait = max(r.Wait, tl.besideRoom(places, p.created, until).Seconds())
	}
	return r
}

// besideRoom is the longest time without interruption between from and until in which
// some node had a free place.
func (tl *Timeline) besideRoom(places map[string]int, from, until time.Time) time.Duration {
	used := map[string]int{}
	free := func() bool {
		for node, n := range places {
			if used[node] < n {
				return true
			}
		}
		return false
	}
	var longest time.Duration
	since := from
	wasFree := true
	step := func(now time.Time) {
		if wasFree && now.After(since) {
			longest = max(longest, minTime(now, until).Sub(since))
		}
	}
	for _, c := range tl.changes {
		if c.at.After(until) {
			break
		}
		used[c.node] += c.delta
		if isFree := free(); isFree != wasFree {
			at := maxTime(c.at, from)
			step(at)
			wasFree, since = isFree, at
		}
	}
	step(until)
	return longest
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
