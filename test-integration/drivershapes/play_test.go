// SPDX-License-Identifier: Apache-2.0

package drivershapes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// Labels of nodes. The first one has the name of the node, and is the topology of drivers.
const (
	nodeLabel = "topology.shapes.example.com/node"
	zoneLabel = "topology.shapes.example.com/zone"
	loadLabel = "shapes.example.com/load"
)

const (
	// late is how much later than with the stock programs a pod may have its node, beside what the first one took there.
	late = 5 * time.Second
	// settled is for how long nothing happens when nothing will happen any more, beside what the first pod
	// took. It is longer than the longest backoff of a pod.
	settled = 3 * time.Second
	// stuck is for how long no pod gets a node when none will any more, although some are tried: their
	// volumes are refused for ever. A busy machine deletes volumes slowly.
	stuck = 20 * time.Second
)

// outcome is what comes out of a load.
type outcome struct {
	Pods    int `json:"pods"`
	Running int `json:"running"`
	// Refused is how many volumes the driver had no room for.
	Refused int `json:"refused"`
	// Last is how many seconds it took until the last of these pods had its node. With the gate, it is the
	// last of as many as with the stock programs.
	Last float64 `json:"last"`
	// Waits are the reasons of the other pods, with numbers of nodes.
	Waits []string `json:"waits,omitempty"`

	placed []time.Duration
	// slow is how long it took until a pod had its node, or each a reason: the machine may be busy.
	slow time.Duration
}

// player plays a shape on one side.
type player struct {
	*clustertest.Cluster
	side    *side
	shape   *shape
	pods    corelisters.PodNamespaceLister
	drivers map[string]*modeldriver.Driver // of loads
}

// newPlayer starts the driver or drivers of a shape, and returns when they have published. name is that of this run.
func newPlayer(tCtx ktesting.TContext, s *side, shape *shape, name string) *player {
	tCtx.Helper()
	p := &player{Cluster: clustertest.Connect(tCtx, s.server), side: s, shape: shape, drivers: map[string]*modeldriver.Driver{}}
	p.Namespace = name
	_, err := p.Client().CoreV1().Namespaces().Create(p, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	p.ExpectNoError(err, "create namespace")
	factory := informers.NewSharedInformerFactoryWithOptions(p.Client(), 0, informers.WithNamespace(name))
	p.pods = factory.Core().V1().Pods().Lister().Pods(name)
	factory.StartWithContext(p)
	factory.WaitForCacheSyncWithContext(p)
	if shape.model { // a driver for each load
		for _, l := range shape.loads() {
			p.startDriver(name+"-"+l.name, l)
		}
	} else {
		p.startDriver(name, shape.loads()...)
	}
	for _, l := range shape.loads() {
		d := p.drivers[l.name]
		if shape.shrink != 0 {
			d.Resize(p.node(l, 1), 0, -shape.shrink<<30)
		}
		for i := range nodesEach {
			if shape.static != "" {
				node := p.node(l, i)
				p.CreateVolume(node, d.Classes[0], d.Name, shape.static, func(pv *st.PersistentVolumeWrapper) { pv.NodeAffinityIn(nodeLabel, []string{node}) })
			}
		}
	}
	if shape.shrink != 0 {
		// Polled twice, so that the provisioner has tried to write what it read first.
		calls := p.drivers[loads[0].name].Calls()
		p.Eventually(func(context.Context) error {
			if got := p.drivers[loads[0].name].Calls() - calls; got < 2*nodesEach*len(loads) {
				return fmt.Errorf("the driver was asked %d times", got)
			}
			return nil
		})
	}
	return p
}

func (p *player) node(l load, i int) string { return fmt.Sprintf("%s-%d", l.label(p.Cluster), i) }

// classes returns the names of the classes of a driver.
func (p *player) classes(driver string) (names []string) {
	for i := range max(p.shape.classes, 1) {
		names = append(names, fmt.Sprintf("%s-%d", driver, i))
	}
	return names
}

// startDriver starts a driver for loads.
func (p *player) startDriver(name string, of ...load) {
	p.Helper()
	config := p.shape.config
	config.Name, config.Classes = name+".example.com", p.classes(name)
	pools := modeldriver.GiB(100)
	if p.shape.pools != nil {
		pools = modeldriver.GiB(p.shape.pools...)
	}
	var nodes []string
	for _, l := range of {
		for i := range nodesEach {
			node := p.node(l, i)
			segment := modeldriver.Segment{Labels: map[string]string{nodeLabel: node}, Pools: pools}
			if p.shape.zone {
				segment.Labels[zoneLabel] = "a"
			}
			p.CreateNodeOf(config.Name, node, segment, map[string]string{loadLabel: l.label(p.Cluster)})
			config.Segments, nodes = append(config.Segments, segment), append(nodes, node)
		}
	}
	var d *modeldriver.Driver
	if p.shape.model {
		d = p.StartDriver(config)
	} else {
		d = p.Install(config)
		if !config.Immediate {
			nodes = []string{""} // one for all
		}
		for _, node := range nodes {
			p.side.startProvisioner(p.Cluster, d, node, p.shape.flags...)
		}
	}
	for _, l := range of {
		p.drivers[l.name] = d
	}
	want := len(config.Segments) * len(config.Classes) * max(config.Overlapping, 1)
	p.Eventually(func(ctx context.Context) error {
		list, err := p.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).List(ctx, metav1.ListOptions{})
		n := 0
		for _, o := range list.Items {
			if slices.Contains(config.Classes, o.StorageClassName) {
				n++
			}
		}
		if err == nil && n != want {
			err = fmt.Errorf("%d capacity objects, want %d", n, want)
		}
		return err
	})
}

// deleteObjects deletes the capacity objects of a load, and returns when there are others in their place.
func (p *player) deleteObjects(l load) {
	p.Helper()
	objects := p.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace)
	list := func(ctx context.Context) map[types.UID]string {
		all, err := objects.List(ctx, metav1.ListOptions{})
		p.ExpectNoError(err, "list capacity objects")
		uids := map[types.UID]string{}
		for _, o := range all.Items {
			if strings.HasPrefix(o.NodeTopology.MatchLabels[nodeLabel], l.label(p.Cluster)) {
				uids[o.UID] = o.Name
			}
		}
		return uids
	}
	old := list(p)
	for _, name := range old {
		if err := objects.Delete(p, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) { // one of two for a segment
			p.ExpectNoError(err, "delete capacity object")
		}
	}
	p.Eventually(func(ctx context.Context) error {
		n := 0
		for uid := range list(ctx) {
			if old[uid] == "" {
				n++
			}
		}
		if n != nodesEach {
			return fmt.Errorf("%d new capacity objects, want %d", n, nodesEach)
		}
		return nil
	})
}

// play plays all loads, each until isOver says that nothing more is to be expected.
func (p *player) play(isOver func(load load, o outcome, quiet bool, since time.Duration) bool, ended func(load, outcome)) {
	var group sync.WaitGroup
	for _, l := range p.shape.loads() {
		group.Go(func() {
			o := outcome{Pods: l.pods}
			defer func() { ended(l, o) }() // also after a fatal error
			p.run(l, &o, func(quiet bool, since time.Duration) bool { return isOver(l, o, quiet, since) })
		})
	}
	group.Wait()
}

// run plays a load.
func (p *player) run(l load, o *outcome, isOver func(quiet bool, since time.Duration) bool) {
	p.Helper()
	d := p.drivers[l.name]
	var nodes []string
	for i := range nodesEach {
		nodes = append(nodes, d.Segments[slices.IndexFunc(d.Segments, func(s modeldriver.Segment) bool { return s.Labels[nodeLabel] == p.node(l, i) })].Name())
	}
	began := time.Now()
	created, changed, placed := 0, began, began
	refusedBefore := 0        // when the last pod got a node
	seen := map[string]bool{} // pods that have had a node
	gone := map[string]bool{} // and are deleted
	for ; ; time.Sleep(50 * time.Millisecond) {
		if l.first > 0 && created == l.first && l.isDue(created, len(seen)) && p.shape.restarts {
			p.deleteObjects(l)
		}
		for l.isDue(created, len(seen)) {
			l.create(p.Cluster, created, d.Classes)
			created++
			changed = time.Now()
		}
		o.Waits = nil
		pods, err := p.pods.List(labels.Everything())
		p.ExpectNoError(err, "list pods")
		var running []string
		for _, pod := range pods {
			switch {
			case pod.Spec.NodeSelector[loadLabel] != l.label(p.Cluster) || gone[pod.Name]:
			case pod.Spec.NodeName == "":
				o.Waits = append(o.Waits, reasons(pod))
			default:
				if !seen[pod.Name] {
					seen[pod.Name], changed, placed, refusedBefore = true, time.Now(), time.Now(), o.Refused
					o.placed = append(o.placed, time.Since(began))
				}
				running = append(running, pod.Name)
			}
		}
		waiting := len(o.Waits)
		slices.Sort(o.Waits)
		o.Waits = slices.Compact(o.Waits)
		if refused := d.Failed(nodes...); refused != o.Refused {
			o.Refused, changed = refused, time.Now()
		}
		if o.Running = len(o.placed); o.slow == 0 && (o.Running > 0 || len(o.Waits) > 0 && !slices.Contains(o.Waits, notTried)) {
			o.slow = time.Since(began)
		}
		for i := 0; i < created && l.alive > 0 && len(running) > l.alive; i++ { // the oldest first
			if n := slices.Index(running, l.pod(i)); n >= 0 {
				l.delete(p.Cluster, i)
				running, gone[l.pod(i)] = slices.Delete(running, n, n+1), true
			}
		}
		quiet := settled + o.slow + p.shape.config.Lag + p.shape.config.VolumeDelay
		var isQuiet bool
		switch {
		case !slices.Contains(o.Waits, notTried) && !slices.Contains(o.Waits, unbound):
			isQuiet = time.Since(changed) > quiet
		case o.Refused-refusedBefore >= waiting: // each once, most likely
			isQuiet = time.Since(placed) > stuck+quiet
		default:
			isQuiet = time.Since(changed) > clustertest.Patience
		}
		if isOver(isQuiet, time.Since(began)) {
			return
		}
	}
}

// reason is what the scheduler says of some nodes.
var reason = regexp.MustCompile(`[:,] (\d+ (?:node\(s\)|Insufficient)[^,.]*)`)

// unbound is the reason of the scheduler for a pod whose volumes come before it has a node.
const unbound = "pod has unbound immediate PersistentVolumeClaims"

// notTried is a pod whose volumes are being created, or were refused.
const notTried = "not tried"

// reasons returns why a pod has no node, without the nodes that are not those of its load.
func reasons(pod *corev1.Pod) string {
	var all []string
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled {
			continue
		}
		if strings.Contains(c.Message, unbound) {
			return unbound
		}
		for _, m := range reason.FindAllStringSubmatch(strings.SplitN(c.Message, "preemption:", 2)[0], -1) {
			if !strings.Contains(m[1], "didn't match Pod's node affinity/selector") {
				all = append(all, m[1])
			}
		}
	}
	if len(all) == 0 {
		return notTried
	}
	return strings.Join(all, ", ")
}

// clean deletes pods and claims, so that nobody tries them any more.
func (p *player) clean() {
	p.Helper()
	every, now := metav1.ListOptions{}, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	p.Eventually(func(ctx context.Context) error { // a busy API server does not delete them at once
		return errors.Join(p.Client().CoreV1().Pods(p.Namespace).DeleteCollection(ctx, now, every),
			p.Client().CoreV1().PersistentVolumeClaims(p.Namespace).DeleteCollection(ctx, now, every))
	})
	for _, l := range loads {
		for i := range nodesEach {
			if err := p.Client().CoreV1().Nodes().Delete(p, p.node(l, i), now); !apierrors.IsNotFound(err) {
				p.ExpectNoError(err, "delete node")
			}
		}
	}
}
