// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const (
	leaseName = "kube-scheduler"
	// On a busy machine, a renewal takes its time.
	leaseDuration = 10 * time.Second
	leaseRenewal  = 9 * time.Second
	leaseRetry    = 500 * time.Millisecond
)

// runningScheduler is one with its own way to the API server.
type runningScheduler struct {
	// identity is its name in the lease, if it has to have one.
	identity  string
	link      *link
	informers informers.SharedInformerFactory
	stop      func()
	done      chan struct{}
}

// StartScheduler starts the scheduler. It is for one that was stopped or killed.
func (c *Cluster) StartScheduler() {
	c.Helper()
	c.scheduler = c.start()
	c.unseen = true
}

// StartStandby starts another scheduler, which takes over when the first one does not
// renew its lease any more. It waits until the first one has it: a scheduler that is new
// itself would compete with the one that stands by.
func (c *Cluster) StartStandby() {
	c.Helper()
	if !c.options.Lease {
		c.Fatal("the scheduler has no lease; want Options.Lease")
	}
	c.waitForLease(c.scheduler)
	c.standby = c.start()
}

// StopScheduler ends the scheduler without waiting for what it is about to bind. It
// takes back what it can.
func (c *Cluster) StopScheduler() {
	c.Helper()
	c.scheduler.stop()
	c.waitForEnd(c.scheduler)
}

// KillScheduler ends the scheduler as a signal does: it writes nothing any more.
func (c *Cluster) KillScheduler() {
	c.Helper()
	c.scheduler.link.End()
	c.StopScheduler()
}

// TakeOver cuts the scheduler off, and returns when it has given up and the one that
// stands by has its lease.
func (c *Cluster) TakeOver() {
	c.Helper()
	c.scheduler.link.Cut()
	c.waitForEnd(c.scheduler)
	c.waitForLease(c.standby)
	c.scheduler, c.standby = c.standby, nil
}

// waitForLease waits until a scheduler has the lease.
func (c *Cluster) waitForLease(p *runningScheduler) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		lease, err := c.Client().CoordinationV1().Leases(c.Namespace).Get(ctx, leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || *holder != p.identity {
			return fmt.Errorf("%s does not have the lease", p.identity)
		}
		return nil
	})
}

// waitForEnd waits until a scheduler has ended.
func (c *Cluster) waitForEnd(p *runningScheduler) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		select {
		case <-p.done:
			return nil
		default:
			return errors.New("the scheduler still runs")
		}
	})
}

// Relist has the scheduler list again what it watches of capacity, and returns when
// it did.
func (c *Cluster) Relist() {
	c.Helper()
	link := c.scheduler.link
	link.Relist("pods", "persistentvolumeclaims", "persistentvolumes", "csistoragecapacities")
	c.Eventually(func(context.Context) error {
		if !link.relisted() {
			return errors.New("the scheduler has not listed again")
		}
		return nil
	})
}

// CutServer has the API server away for everybody but the test.
func (c *Cluster) CutServer() { c.eachLink((*link).Cut) }

// MendServer has the API server back.
func (c *Cluster) MendServer() { c.eachLink((*link).Mend) }

func (c *Cluster) eachLink(do func(*link)) {
	do(c.components)
	do(c.scheduler.link)
	if c.standby != nil {
		do(c.standby.link)
	}
}

func (c *Cluster) start() *runningScheduler {
	c.Helper()
	link, restConfig := c.newLink(c.RESTConfig())
	tCtx := c.WithCancel().WithRESTConfig(restConfig)
	p := &runningScheduler{link: link, done: make(chan struct{})}
	p.stop = func() { tCtx.Cancel("scheduler is stopped") }

	config, client := c.schedulerConfig(), tCtx.Client()
	p.informers = scheduler.NewInformerFactory(client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	c.ExpectNoError(broadcaster.StartRecordingToSinkWithContext(tCtx), "record events")
	s, err := scheduler.New(tCtx, client, p.informers, nil, profile.NewRecorderFactory(broadcaster),
		scheduler.WithKubeConfig(tCtx.RESTConfig()),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(config.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(config.PodInitialBackoffSeconds),
		scheduler.WithParallelism(config.Parallelism),
		scheduler.WithFrameworkOutOfTreeRegistry(c.options.Plugins),
	)
	c.ExpectNoError(err, "create the scheduler")
	p.informers.StartWithContext(tCtx)
	p.informers.WaitForCacheSyncWithContext(tCtx)
	c.ExpectNoError(s.WaitForHandlersSync(tCtx), "wait for the handlers of the scheduler")
	run := s.Run
	if c.options.Lease {
		c.leases++
		p.identity = fmt.Sprintf("scheduler-%d", c.leases)
		run = c.elected(p, client.CoordinationV1(), run)
	}
	c.running.Go(func() {
		run(tCtx)
		close(p.done)
		<-tCtx.Done()
		broadcaster.Shutdown()
	})
	return p
}

// elected returns run for as long as the process has the lease. If it loses it, it
// ends, as kube-scheduler does.
func (c *Cluster) elected(p *runningScheduler, client coordinationv1.LeasesGetter, run func(context.Context)) func(context.Context) {
	c.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: leaseName},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: p.identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: run,
			OnStoppedLeading: func() {
				p.link.End()
				p.stop()
			},
		},
	})
	c.ExpectNoError(err, "create the elector")
	return elector.Run
}

// WaitForScheduler waits until the scheduler knows the nodes, classes, drivers and capacities
// as they are. A pod that it tries earlier may be rejected for a reason that the test does not mean,
// and nothing may happen that has it tried again.
func (c *Cluster) WaitForScheduler() {
	c.Helper()
	core, storage := c.scheduler.informers.Core().V1(), c.scheduler.informers.Storage().V1()
	everything := labels.Everything()
	c.Eventually(func(ctx context.Context) error {
		// All at once, because the API server waits for its cache with each.
		var nodes *corev1.NodeList
		var classes *storagev1.StorageClassList
		var drivers *storagev1.CSIDriverList
		var capacities *storagev1.CSIStorageCapacityList
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) {
			nodes, err = c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			return err
		})
		group.Go(func() (err error) {
			classes, err = c.Client().StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
			return err
		})
		group.Go(func() (err error) {
			drivers, err = c.Client().StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{})
			return err
		})
		group.Go(func() (err error) {
			capacities, err = c.Client().StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
			return err
		})
		if err := group.Wait(); err != nil {
			return err
		}
		seenNodes, err1 := core.Nodes().Lister().List(everything)
		seenClasses, err2 := storage.StorageClasses().Lister().List(everything)
		seenDrivers, err3 := storage.CSIDrivers().Lister().List(everything)
		seenCapacities, err4 := storage.CSIStorageCapacities().Lister().List(everything)
		return errors.Join(err1, err2, err3, err4,
			known(nodes.Items, seenNodes), known(classes.Items, seenClasses), known(drivers.Items, seenDrivers),
			known(capacities.Items, seenCapacities))
	})
	c.unseen = false
}

// WaitForVolume waits until the scheduler knows the volume of a claim as it is now, or as it
// became meanwhile.
func (c *Cluster) WaitForVolume(claim string) {
	c.Helper()
	now := c.Volume(claim)
	c.Eventually(func(context.Context) error {
		seen, err := c.scheduler.informers.Core().V1().PersistentVolumes().Lister().Get(now.Name)
		if err != nil {
			return err
		}
		order, err := resourceversion.CompareResourceVersion(seen.ResourceVersion, now.ResourceVersion)
		if err == nil && order < 0 {
			err = fmt.Errorf("the scheduler knows version %s of volume %s, want %s or later", seen.ResourceVersion, now.Name, now.ResourceVersion)
		}
		return err
	})
}

// WaitForClaim waits until the scheduler knows a claim.
func (c *Cluster) WaitForClaim(name string) {
	c.Helper()
	claims := c.scheduler.informers.Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(c.Namespace)
	c.Eventually(func(context.Context) error {
		_, err := claims.Get(name)
		return err
	})
}

// WaitForCapacity waits until the scheduler knows an object with that capacity in bytes.
func (c *Cluster) WaitForCapacity(bytes int64) {
	c.Helper()
	c.Eventually(func(context.Context) error {
		objects, err := c.scheduler.informers.Storage().V1().CSIStorageCapacities().Lister().List(labels.Everything())
		if err == nil && !slices.ContainsFunc(objects, func(o *storagev1.CSIStorageCapacity) bool { return o.Capacity != nil && o.Capacity.Value() == bytes }) {
			err = fmt.Errorf("the scheduler knows %d objects, none with a capacity of %d", len(objects), bytes)
		}
		return err
	})
}

// known checks that exactly these versions of objects have been seen. One that was deleted and created again has the name
// of the one before.
func known[T any, P interface {
	*T
	metav1.Object
}](all []T, seen []P) error {
	now, then := sets.New[string](), sets.New[string]()
	for i := range all {
		now.Insert(version(P(&all[i])))
	}
	for _, object := range seen {
		then.Insert(version(object))
	}
	if !now.Equal(then) {
		return fmt.Errorf("of %T, the scheduler does not know %q, and still knows %q", *new(T), sets.List(now.Difference(then)), sets.List(then.Difference(now)))
	}
	return nil
}

func version(object metav1.Object) string {
	return object.GetName() + " of version " + object.GetResourceVersion()
}
