// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"fmt"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// publisher is a control plane whose capacity objects are observed while one provisioner after another
// publishes them. Each node has one pool.
type publisher struct {
	*clustertest.Cluster
	driver *modeldriver.Driver
	nodes  int
	// objects is how many there have to be: one for each node and class.
	objects int

	url string // of the metrics of the provisioner

	mutex sync.Mutex
	shown map[string]int64 // bytes, by the names of objects
	// writes is how many versions of objects were seen.
	writes int
}

// newPublisher creates nodes, the driver, and classes on the same pools. There is no scheduler.
func newPublisher(tCtx *clustertest.Cluster, nodes int, classes int) *publisher {
	tCtx.Helper()
	p := &publisher{Cluster: tCtx, nodes: nodes, objects: nodes * classes, shown: map[string]int64{}}
	names := []string{class}
	for i := 1; i < classes; i++ {
		names = append(names, fmt.Sprintf("%s-%d", class, i+1))
	}
	p.driver = createDriver(tCtx, nodes, places*volumeSize<<30, names...)
	factory := informers.NewSharedInformerFactory(p.Client(), 0)
	see := func(obj any) {
		o := obj.(*storagev1.CSIStorageCapacity)
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.writes++
		p.shown[o.Name] = o.Capacity.Value()
	}
	_, err := factory.Storage().V1().CSIStorageCapacities().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, obj any) { see(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				p.mutex.Lock()
				defer p.mutex.Unlock()
				delete(p.shown, name.Name)
			}
		},
	})
	p.ExpectNoError(err, "watch capacity")
	factory.StartWithContext(p)
	factory.WaitForCacheSyncWithContext(p)
	return p
}

// start starts a provisioner whose metrics are served. The flags win over its own.
func (p *publisher) start(v variant, flags ...string) *clustertest.Process {
	p.Helper()
	port, err := clustertest.FreePort()
	p.ExpectNoError(err, "port of the provisioner")
	p.url = "http://127.0.0.1:" + port + "/metrics"
	return startProvisioner(p.Cluster, p.driver, v, p.RESTConfig(), append(flags, "--http-endpoint=127.0.0.1:"+port)...)
}

// setAll sets what is free on each node.
func (p *publisher) setAll(bytes int64) {
	for i := range p.nodes {
		p.driver.SetPools(fmt.Sprintf("node-%d", i+1), bytes)
	}
}

// sample is what the metrics of the provisioner say at one moment. It is not the same moment for both queues: what moves
// from one to the other may be in both of them, or in none.
type sample struct {
	at           time.Duration
	queue, polls int
}

// interval is that in which they are taken. It costs the provisioner more time than anything else if there are
// thousands of objects.
const interval = 250 * time.Millisecond

// look takes a sample.
func (p *publisher) look(ctx context.Context, began time.Time) (sample, error) {
	s := sample{at: time.Since(began)}
	all, err := metricsOf(ctx, p.url)
	if err != nil {
		return sample{}, err
	}
	queue, err := all.sum("workqueue_depth", "name", "csistoragecapacity")
	if err != nil {
		return sample{}, err
	}
	// Upstream's has no queue for polls.
	polls, _ := all.sum("workqueue_depth", "name", "csistoragecapacity_polls")
	s.queue, s.polls = int(queue), int(polls)
	return s, nil
}

// seen returns how many versions of objects were seen.
func (p *publisher) seen() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.writes
}

// showing returns how many objects show so many bytes.
func (p *publisher) showing(bytes int64) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	n := 0
	for _, shown := range p.shown {
		if shown == bytes {
			n++
		}
	}
	return n
}

// phase is what happens until all objects show what is free, and nothing is left to do.
type phase struct {
	// shown is when all objects showed it, empty when the queue was empty after that. They are 0 if that
	// was not seen.
	shown, empty time.Duration
	samples      []sample
}

// watch takes samples until a phase has ended, or the limit is over. bytes is what is free on each node.
func (p *publisher) watch(limit time.Duration, bytes int64) phase {
	p.Helper()
	var result phase
	began := time.Now()
	samples, end := p.sample(began)
	defer end()
	for ; time.Since(began) < limit; time.Sleep(100 * time.Millisecond) {
		if result.shown == 0 && p.showing(bytes) == p.objects {
			result.shown = time.Since(began)
		}
		select {
		case s := <-samples:
			result.samples = append(result.samples, s)
			if result.shown > 0 && s.at >= result.shown && s.queue == 0 && s.polls == 0 {
				result.empty = s.at
				return result
			}
		default:
		}
	}
	return result
}

// sample takes samples until it is ended. Those are left out for which the provisioner does not answer: it is about to
// start.
func (p *publisher) sample(began time.Time) (samples <-chan sample, end func()) {
	ctx, cancel := context.WithCancel(p)
	taken := make(chan sample)
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			if s, err := p.look(ctx, began); err == nil {
				select {
				case taken <- s:
				case <-ctx.Done():
				}
			}
			select {
			case <-time.After(interval):
			case <-ctx.Done():
			}
		}
	})
	return taken, func() {
		cancel()
		group.Wait()
	}
}

// highest returns the greatest of what samples have of something.
func (r phase) highest(of func(sample) int) int {
	most := 0
	for _, s := range r.samples {
		most = max(most, of(s))
	}
	return most
}
