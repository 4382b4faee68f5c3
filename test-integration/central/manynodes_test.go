package central

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// Sizes that nodes have in turn.
const (
	someBytes  = places * volumeSize << 30
	otherBytes = 3 << 30
)

// manyNodes is how many nodes a provisioner publishes in the benchmark, and how.
const (
	manyNodes, manyClasses = 2000, 2
	manyQPS                = 100
	manyPoll               = 10 * time.Second
	manyLimit              = 3 * time.Minute
	// manyInterval is that in which the metrics are read.
	manyInterval = 20 * time.Second
)

// publishers are the provisioners that the benchmarks of this page compare.
var publishers = []variant{
	{provisioner: "STOCK_CSI_PROVISIONER", qps: manyQPS},
	{provisioner: "CSI_PROVISIONER", qps: manyQPS, unconfirmed: true},
	{provisioner: "CSI_PROVISIONER", qps: manyQPS},
}

func (v variant) name() string {
	switch {
	case v.provisioner == "STOCK_CSI_PROVISIONER":
		return "stock"
	case v.unconfirmed:
		return "patched"
	}
	return "patched, confirms"
}

// TestManyNodes: one provisioner publishes 200 nodes and two classes. After all numbers have changed, its
// queue is empty again, and was never longer than there are objects, however often they were polled meanwhile.
func TestManyNodes(t *testing.T) {
	const nodes, classes = 200, 2
	for _, v := range publishers[1:] {
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
		if most := r.highest(depth); most > p.objects {
			t.Errorf("%s: %d items were in the queue, want at most %d, one for each object", what, most, p.objects)
		}
	}
	check("the first numbers", p.watch(limit, someBytes))
	expectPools(p.Cluster, p.objects, someBytes)
	p.setAll(otherBytes)
	check("other numbers", p.watch(limit, otherBytes))
	expectPools(p.Cluster, p.objects, otherBytes)
}

// BenchmarkManyNodes has one provisioner publish many nodes, and then has all numbers change.
func BenchmarkManyNodes(b *testing.B) {
	var table, depths strings.Builder
	c := clustertest.StartWith(ktesting.Init(b), clustertest.Options{NoScheduler: true})
	p := newPublisher(c, manyNodes, manyClasses)
	p.interval = manyInterval
	for _, v := range publishers {
		p.setAll(someBytes) // before it asks
		process := p.start(v, "--capacity-poll-interval="+manyPoll.String())
		for _, step := range []struct {
			name  string
			bytes int64
		}{{"all objects are new", someBytes}, {"all numbers change", otherBytes}} {
			p.setAll(step.bytes)
			r := p.watch(manyLimit, step.bytes)
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %d | %d | %.1f | %d | %.1f |\n", v.name(), step.name, seconds(r.shown), seconds(r.empty),
				r.highest(depth), r.highest(memory)>>20, float64(r.writes)/max(1, r.shown.Seconds()), r.calls, time.Duration(r.highest(took)).Seconds())
			fmt.Fprintf(&depths, "| %s | %s | %s |\n", v.name(), step.name, r.depths())
		}
		process.Stop(p.TContext.TContext)
		p.clear()
	}
	writePart(b, "manynodes", fmt.Sprintf(manyHead, manyNodes, manyClasses, manyQPS, int(manyPoll.Seconds()),
		p.objects/60, p.objects/manyQPS/int(manyPoll.Seconds()))+
		table.String()+depthHead+depths.String())
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return fmt.Sprintf("%.0f", d.Seconds())
}

const manyHead = `
## One provisioner for %d nodes and %d classes

All nodes have the driver, and the provisioner may write capacity %d times a second
(` + "`--kube-api-capacity-qps`" + `). It polls every %d seconds. At first there are no objects; then all numbers
change at once. The defaults are one write in a second and one poll in a
minute: there, as many writes take more than an hour, and all objects are polled %d times meanwhile. Here that is %d times.

- *shown*: seconds until all objects showed what is free. After three minutes, it is left at that: *never*.
- *empty*: seconds until the queue was empty after that.
- *depth*: the longest that the queue was.
- *memory*: the most resident memory, in MiB.
- *writes*: writes in a second until all objects showed it, 0 for never.
- *calls*: calls of GetCapacity until then.
- *read*: seconds that it took at most to read the metrics of the provisioner, which is how depth and memory are
  known. They are read 20 seconds after the last time. For them, the stock external-provisioner compares each object with
  each node and class, and does nothing else about capacity meanwhile. The patched one does that only for the few objects
  that it does not know.

| provisioner | step | shown | empty | depth | memory | writes | calls | read |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`

const depthHead = `
The depth of the queue whenever the metrics were read:

| provisioner | step | depths |
| --- | --- | --- |
`
