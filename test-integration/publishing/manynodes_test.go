// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// Sizes that nodes have in turn.
const (
	someBytes  = places * volumeSize << 30
	otherBytes = 3 << 30
)

// manyQPS is how often the provisioner may write capacity in a second.
const manyQPS = 100

// publishers are the provisioners of the series that the tests compare.
var publishers = []variant{
	{qps: manyQPS, unconfirmed: true},
	{qps: manyQPS},
}

func (v variant) name() string {
	if v.unconfirmed {
		return "patched"
	}
	return "patched, confirms"
}

// TestManyNodes: one provisioner publishes 200 nodes and two classes. After all numbers have changed, its
// queues are empty again, and were never longer than there are objects, however often they were polled meanwhile.
func TestManyNodes(t *testing.T) {
	const nodes, classes = 200, 2
	for _, v := range publishers {
		t.Run(v.name(), func(t *testing.T) {
			t.Parallel()
			testManyNodes(t, v, nodes, classes)
		})
	}
}

func testManyNodes(t *testing.T, v variant, nodes, classes int) {
	p := newPublisher(clustertest.StartWith(ktesting.Init(t), clustertest.Options{NoScheduler: true}), nodes, classes)
	p.start(v, "--capacity-poll-interval=1s")
	check := func(what string, r phase) {
		t.Helper()
		if r.shown == 0 || r.empty == 0 {
			t.Errorf("%s: all objects showed it after %v, and the queue was empty after %v; want both in %v, last: %+v",
				what, r.shown, r.empty, limit, r.samples[max(0, len(r.samples)-1):])
		}
		for queue, most := range map[string]int{
			"the queue":     r.highest(func(s sample) int { return s.queue }),
			"that of polls": r.highest(func(s sample) int { return s.polls }),
		} {
			if most > p.objects {
				t.Errorf("%s: %d items were in %s, want at most %d, one for each object", what, most, queue, p.objects)
			}
		}
	}
	check("the first numbers", p.watch(limit, someBytes))
	expectPools(p.Cluster, p.objects, someBytes)
	p.setAll(otherBytes)
	check("other numbers", p.watch(limit, otherBytes))
	expectPools(p.Cluster, p.objects, otherBytes)
}
