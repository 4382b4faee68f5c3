// SPDX-License-Identifier: Apache-2.0

package stress

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// run is a control plane under stress.
type run struct {
	*clustertest.Cluster
	seed seed
	// drivers has them by their class.
	drivers map[string]*modeldriver.Driver

	// waiting are the pods without a node, since when.
	waiting map[string]time.Time
	// placed are the pods that got a node, the oldest first.
	placed []string
	// torn is the number of pods that were deleted because a part of their volumes
	// exists on a node without room for the others.
	torn        int
	pinnedSince map[string]time.Time
	// roomSince is since when there is room for a pod that waits, and nothing else
	// on its way there. longest is the longest time of that. certainSince and
	// certain are the same where the scheduler can know.
	roomSince, certainSince map[fit]time.Time
	longest, certain        time.Duration
	// guessing is set if the scheduler counts the bytes of volumes that it takes for
	// not reported.
	guessing bool
	// disturbed is the last time at which a fault was over.
	disturbed time.Time
}

// fit is a pod and a node with room for it.
type fit struct {
	pod  string
	node int
}

// run creates pods and deletes them, until all of them have had a node. The faults
// come in between.
func (r *run) run(total int, faults []fault) {
	r.Helper()
	created, progress, checked := 0, time.Now(), time.Now()
	every := max(total/(len(faults)+1), 1)
	for created < total || len(r.waiting) > 0 {
		for created < total && len(r.waiting) < mostWaiting {
			r.create(created)
			created++
			if len(faults) > 0 && created%every == 0 {
				r.Logf("%d pods were created, %d wait: %s", created, len(r.waiting), faults[0].name)
				faults[0].do(r)
				faults, r.disturbed = faults[1:], time.Now()
			}
		}
		before := len(r.waiting)
		r.observe()
		if len(r.waiting) < before {
			progress = time.Now()
		}
		// Pods that wait may all be larger than what the others leave.
		for len(r.placed) > mostPlaced || len(r.placed) > 0 && time.Since(progress) > time.Second {
			r.DeletePod(r.pod(r.placed[0]))
			r.placed = r.placed[1:]
			progress = time.Now()
		}
		if time.Since(checked) > time.Second {
			r.checkIdle()
			checked = time.Now()
		}
		time.Sleep(50 * time.Millisecond) // the cluster is busy enough
	}
	for _, pod := range r.placed {
		r.DeletePod(r.pod(pod))
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

// observe looks which pods have got a node. Some that wait are withdrawn.
func (r *run) observe() {
	r.Helper()
	placed, err := r.Placed(r)
	r.ExpectNoError(err, "list pods")
	for _, pod := range slices.Sorted(maps.Keys(r.waiting)) {
		switch {
		case placed[pod] != "":
			delete(r.waiting, pod)
			r.placed = append(r.placed, pod)
		case time.Since(r.waiting[pod]) > time.Second && r.seed.happens(2, "%s is withdrawn", pod):
			delete(r.waiting, pod)
			r.DeletePod(r.pod(pod))
		}
	}
}

func (r *run) provisioned() int {
	sum := 0
	for _, driver := range r.drivers {
		sum += driver.Provisioned()
	}
	return sum
}

// checkIdle checks that no pod waits while a node has room for it and nothing is on
// its way there. Pods of which a volume exists, or may come, cannot go elsewhere.
// Nobody but their owner can help them if there is no room for the others, so they
// are deleted after a while.
func (r *run) checkIdle() {
	r.Helper()
	pinned, busy := r.inFlight()
	young := r.young()
	now := time.Now()
	for pod := range r.waiting {
		since, was := r.pinnedSince[pod]
		switch {
		case !pinned[pod]:
			delete(r.pinnedSince, pod)
		case !was || r.disturbed.After(since):
			r.pinnedSince[pod] = now
		case now.Sub(since) > expiry+backoff+slack:
			delete(r.waiting, pod)
			r.DeletePod(r.pod(pod))
			r.torn++
		}
	}
	for node := range nodes {
		for pod := range r.waiting {
			key := fit{pod: pod, node: node}
			class := r.classOf(pod)
			place := class + "/" + nodeName(node)
			free, sizes := r.drivers[class].Free(nodeName(node)), r.sizes(pod)
			room := !pinned[pod] && !busy[place] && hasRoom(slices.Clone(free), sizes)
			r.longest = max(r.longest, r.since(r.roomSince, key, room, now))
			for pool := range free {
				free[pool] -= young[place]
			}
			idle := r.since(r.certainSince, key, room && hasRoom(free, sizes), now)
			r.certain = max(r.certain, idle)
			if idle > expiry+backoff+slack {
				got, err := r.Client().CoreV1().Pods(r.Namespace).Get(r, pod, metav1.GetOptions{})
				r.ExpectNoError(err, "get pod")
				r.Fatalf("%s has room for pod %s, and nothing is on its way there for %v; the pod waits: %v", nodeName(node), pod, idle, got.Status.Conditions)
			}
		}
	}
	for _, times := range []map[fit]time.Time{r.roomSince, r.certainSince} {
		maps.DeleteFunc(times, func(key fit, _ time.Time) bool {
			_, waits := r.waiting[key.pod]
			return !waits
		})
	}
}

// since returns for how long there has been room for a pod, and notes it.
func (r *run) since(times map[fit]time.Time, key fit, room bool, now time.Time) time.Duration {
	if !room {
		delete(times, key)
		return 0
	}
	if begin, had := times[key]; !had || r.disturbed.After(begin) {
		times[key] = now
	}
	return now.Sub(times[key])
}

// young returns the bytes of the volumes that are younger than the timeout, by class
// and node, if the scheduler guesses. Where pods come and go all the time, deletions
// hide one such volume after the other from the scheduler, so that it may keep their
// bytes from others, in every pool, until the timeout of each is over.
func (r *run) young() map[string]int64 {
	r.Helper()
	bytes := map[string]int64{}
	if !r.guessing {
		return bytes
	}
	list, err := r.Client().CoreV1().PersistentVolumes().List(r, metav1.ListOptions{})
	r.ExpectNoError(err, "list volumes")
	for i := range list.Items {
		volume := &list.Items[i]
		if time.Since(volume.CreationTimestamp.Time) > expiry {
			continue
		}
		for node := range nodes {
			if r.drivers[volume.Spec.StorageClassName].Has(volume.Spec.CSI.VolumeHandle, nodeName(node)) {
				bytes[volume.Spec.StorageClassName+"/"+nodeName(node)] += volume.Spec.Capacity.Storage().Value()
			}
		}
	}
	return bytes
}

// inFlight returns the pods of which a claim has a volume, or a node for it, and the
// classes and nodes to which a volume is on its way.
func (r *run) inFlight() (pinned, busy map[string]bool) {
	r.Helper()
	list, err := r.Client().CoreV1().PersistentVolumeClaims(r.Namespace).List(r, metav1.ListOptions{})
	r.ExpectNoError(err, "list claims")
	pinned, busy = map[string]bool{}, map[string]bool{}
	for i := range list.Items {
		claim := &list.Items[i]
		node := claim.Annotations[storagehelpers.AnnSelectedNode]
		if claim.Spec.VolumeName != "" || node != "" {
			pinned[claim.Name[:strings.LastIndex(claim.Name, "-")]] = true
		}
		if claim.Spec.VolumeName == "" && node != "" {
			busy[*claim.Spec.StorageClassName+"/"+node] = true
		}
	}
	return pinned, busy
}

// hasRoom tries all distributions of sizes in GiB over pools in bytes.
func hasRoom(free, sizes []int64) bool {
	if len(sizes) == 0 {
		return true
	}
	size := sizes[0] << 30
	for pool := range free {
		if free[pool] < size {
			continue
		}
		free[pool] -= size
		if hasRoom(free, sizes[1:]) {
			return true
		}
		free[pool] += size
	}
	return false
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
}
