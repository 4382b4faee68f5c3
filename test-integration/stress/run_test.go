package stress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// run is a control plane under stress.
type run struct {
	*clustertest.Cluster
	seed    seed
	oracle  *oracle
	drivers []*modeldriver.Driver

	// waiting are the pods without a node, since when.
	waiting map[string]time.Time
	// placed are the pods that got a node, the oldest first, ended those that were
	// deleted.
	placed []string
	ended  map[string]bool
	// torn is the number of pods that were deleted because a part of their volumes
	// exists on a node without room for the others.
	torn        int
	pinnedSince map[string]time.Time
	// roomSince is since when there is room for a pod that waits.
	roomSince map[fit]time.Time

	restarted          time.Time
	failed             int
	failedAfterRestart int
}

// fit is a pod and an object with room for it.
type fit struct{ pod, object string }

// run creates pods and deletes them, until all of them have had a node.
func (r *run) run(total int) {
	r.Helper()
	created, progress, checked := 0, time.Now(), time.Now()
	for created < total || len(r.waiting) > 0 {
		for created < total && len(r.waiting) < mostWaiting {
			r.create(created)
			created++
			if created%max(total/(restarts+1), 1) == 0 && created < total {
				r.restart(created)
			}
		}
		before := len(r.waiting)
		r.observe()
		if len(r.waiting) < before {
			progress = time.Now()
		}
		// Pods that wait may all be larger than what the others leave.
		for len(r.placed) > mostPlaced || len(r.placed) > 0 && time.Since(progress) > time.Second {
			r.delete(r.placed[0])
			r.placed = r.placed[1:]
			progress = time.Now()
		}
		r.countFailures()
		if time.Since(checked) > time.Second {
			r.checkIdle()
			checked = time.Now()
		}
		time.Sleep(50 * time.Millisecond) // the cluster is busy enough
	}
	for _, pod := range r.placed {
		r.delete(pod)
	}
	r.placed = nil
}

// classOf returns the storage class of a pod.
func (r *run) classOf(pod string) string {
	if r.seed.happens(50, "class of %s", pod) {
		return single
	}
	return joint
}

// sizes returns the volumes of a pod, in GiB, the largest first.
func (r *run) sizes(pod string) []int64 {
	random := r.seed.of("volumes of %s", pod)
	if r.classOf(pod) == single {
		return []int64{10 + random.Int64N(71)}
	}
	sizes := make([]int64, 2+random.IntN(2))
	for i := range sizes {
		sizes[i] = 5 + random.Int64N(36)
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	return sizes
}

func (r *run) pod(name string) clustertest.Pod {
	pod := clustertest.Pod{Name: name, Class: r.classOf(name)}
	for _, size := range r.sizes(name) {
		pod.Sizes = append(pod.Sizes, fmt.Sprintf("%dGi", size))
	}
	return pod
}

func (r *run) create(i int) {
	r.Helper()
	name := fmt.Sprintf("pod-%d", i)
	r.CreatePod(r.pod(name))
	r.waiting[name] = time.Now()
}

func (r *run) delete(name string) {
	r.Helper()
	r.DeletePod(r.pod(name))
	r.ended[name] = true
}

// restart restarts the scheduler, which forgets what is reserved.
func (r *run) restart(created int) {
	r.Helper()
	r.Logf("%d pods were created, %d wait: the scheduler gets restarted", created, len(r.waiting))
	r.StopScheduler()
	r.oracle.restarted()
	r.StartScheduler()
	r.restarted = time.Now()
}

// observe looks which pods have got a node. Some that wait are withdrawn.
func (r *run) observe() {
	r.Helper()
	list, err := r.Client().CoreV1().Pods(r.Namespace).List(r, metav1.ListOptions{})
	r.ExpectNoError(err, "list pods")
	for i := range list.Items {
		pod := &list.Items[i]
		since, waits := r.waiting[pod.Name]
		switch {
		case !waits || r.ended[pod.Name]:
		case pod.Spec.NodeName != "":
			delete(r.waiting, pod.Name)
			r.placed = append(r.placed, pod.Name)
		case time.Since(since) > time.Second && r.seed.happens(2, "%s is withdrawn", pod.Name):
			delete(r.waiting, pod.Name)
			r.delete(pod.Name)
		}
	}
}

// countFailures counts volumes without room. After a restart, nobody knows what is
// in flight, until it was published.
func (r *run) countFailures() {
	failed := 0
	for _, driver := range r.drivers {
		failed += driver.Failed()
	}
	if time.Since(r.restarted) < expiry {
		r.failedAfterRestart += failed - r.failed
	}
	r.failed = failed
}

func (r *run) provisioned() int {
	sum := 0
	for _, driver := range r.drivers {
		sum += driver.Provisioned()
	}
	return sum
}

// checkIdle checks that no pod waits while an object has room and nothing happens
// to it. Pods of which a volume exists, or may come, cannot go elsewhere. Nobody but
// their owner can help them if there is no room for the others, so they are deleted
// after a while.
func (r *run) checkIdle() {
	r.Helper()
	list, err := r.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).List(r, metav1.ListOptions{})
	r.ExpectNoError(err, "list CSIStorageCapacity objects")
	pinned := r.pinned()
	now := time.Now()
	for pod := range r.waiting {
		since, was := r.pinnedSince[pod]
		switch {
		case !pinned[pod]:
			delete(r.pinnedSince, pod)
		case !was:
			r.pinnedSince[pod] = now
		case now.Sub(since) > expiry+backoff+slack:
			delete(r.waiting, pod)
			r.delete(pod)
			r.torn++
		}
	}
	for i := range list.Items {
		object := &list.Items[i]
		for pod := range r.waiting {
			key := fit{pod: pod, object: object.Name}
			since, had := r.roomSince[key]
			switch {
			case pinned[pod] || object.StorageClassName != r.classOf(pod) || !hasRoom(object, r.sizes(pod)):
				delete(r.roomSince, key)
				continue
			case !had:
				since = now
				r.roomSince[key] = now
			}
			if used := r.oracle.idleSince(object.Name); used.After(since) {
				since = used
			}
			if r.restarted.After(since) {
				since = r.restarted
			}
			if idle := now.Sub(since); idle > expiry+backoff+slack {
				got, err := r.Client().CoreV1().Pods(r.Namespace).Get(r, pod, metav1.GetOptions{})
				r.ExpectNoError(err, "get pod")
				r.Fatalf("%s has room for pod %s, and is idle for %v; the pod waits: %v", object.Name, pod, idle, got.Status.Conditions)
			}
		}
	}
	for key := range r.roomSince {
		if _, waits := r.waiting[key.pod]; !waits {
			delete(r.roomSince, key)
		}
	}
}

// pinned returns the pods of which a claim has a volume, or a node for it.
func (r *run) pinned() map[string]bool {
	r.Helper()
	list, err := r.Client().CoreV1().PersistentVolumeClaims(r.Namespace).List(r, metav1.ListOptions{})
	r.ExpectNoError(err, "list claims")
	pods := map[string]bool{}
	for i := range list.Items {
		if claim := &list.Items[i]; claim.Spec.VolumeName != "" || claim.Annotations[selectedNode] != "" {
			pods[claim.Name[:strings.LastIndex(claim.Name, "-")]] = true
		}
	}
	return pods
}

// hasRoom tries all distributions of sizes in GiB over the pools.
func hasRoom(object *storagev1.CSIStorageCapacity, sizes []int64) bool {
	var free []int64
	for _, pool := range object.AvailableCapacities {
		free = append(free, pool.Value()>>30)
	}
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(sizes) {
			return true
		}
		for pool := range free {
			if free[pool] < sizes[i] {
				continue
			}
			free[pool] -= sizes[i]
			if place(i + 1) {
				return true
			}
			free[pool] += sizes[i]
		}
		return false
	}
	return place(0)
}

// probe checks that nothing is left of all that: each node has room for pods that
// need all of its pools.
func (r *run) probe() {
	r.Helper()
	for i := range nodes {
		for _, class := range []string{single, joint} {
			r.CreatePod(clustertest.Pod{
				Name: "probe-" + class + "-" + nodeName(i), Class: class, Sizes: []string{"100Gi", "100Gi", "100Gi"}, NodeSelector: clustertest.OnNode(nodeName(i)),
			})
		}
	}
	for i := range nodes {
		for _, class := range []string{single, joint} {
			r.ExpectNode("probe-"+class+"-"+nodeName(i), nodeName(i))
		}
	}
	r.countFailures()
}
