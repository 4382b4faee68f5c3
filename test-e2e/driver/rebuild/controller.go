package rebuild

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// A volume is tried again after the one, then twice that, up to the other.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
)

// Controller releases volumes whose nodes cannot be used, and puts them back.
type Controller struct {
	placer
	factory informers.SharedInformerFactory
	volumes corelisters.PersistentVolumeLister
	// cached gets a node that may be old. It says where to look, and never that a node is gone.
	cached getNode
	// queue has the names of PersistentVolumes.
	queue workqueue.TypedRateLimitingInterface[string]
}

// New returns the controller of a driver, whose topology has a key.
func New(client kubernetes.Interface, driver, key string) *Controller {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	nodes := core.Nodes().Lister()
	return &Controller{
		placer: placer{client: client, driver: driver, key: key, seesPods: true}, factory: factory, volumes: core.PersistentVolumes().Lister(),
		cached: func(_ context.Context, name string) (*corev1.Node, error) { return nodes.Get(name) },
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}
}

// Run keeps the node affinities right until the context ends. What is there at its start counts as added: nodes may
// have gone while nobody watched.
func (c *Controller) Run(ctx context.Context) error {
	core := c.factory.Core().V1()
	for informer, changed := range map[cache.SharedIndexInformer]func(before, now any){
		core.PersistentVolumes().Informer(): func(_, now any) { c.queue.Add(now.(*corev1.PersistentVolume).Name) },
		core.PersistentVolumeClaims().Informer(): func(before, now any) {
			claim := now.(*corev1.PersistentVolumeClaim)
			if old, ok := before.(*corev1.PersistentVolumeClaim); !ok || selected(old) != selected(claim) {
				c.queue.Add(claim.Spec.VolumeName)
			}
		},
		core.Nodes().Informer(): func(before, now any) {
			node := now.(*corev1.Node)
			if old, ok := before.(*corev1.Node); !ok || old.UID != node.UID || isUsable(old) != isUsable(node) {
				c.changedNode(node.Name)
			}
		},
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(now any) { changed(nil, now) }, UpdateFunc: changed,
			DeleteFunc: func(last any) {
				if gone, ok := last.(cache.DeletedFinalStateUnknown); ok {
					last = gone.Obj
				}
				changed(nil, last)
			},
		})
		if err != nil {
			return err
		}
	}
	c.factory.Start(ctx.Done())
	defer c.factory.Shutdown()
	c.factory.WaitForCacheSync(ctx.Done())
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for c.placeNext(ctx) {
		}
	}, time.Second)
	return nil
}

// changedNode looks at the volumes that a node has by their PersistentVolumes.
func (c *Controller) changedNode(name string) {
	volumes, _ := c.volumes.List(labels.Everything()) // A cache does not fail.
	for _, pv := range volumes {
		if c.isOurs(pv) && c.has(pv, name) {
			c.queue.Add(pv.Name)
		}
	}
}

// placeNext waits for a volume to look at, and returns false at the end.
func (c *Controller) placeNext(ctx context.Context) bool {
	name, ended := c.queue.Get()
	if ended {
		return false
	}
	defer c.queue.Done(name)
	pv, err := c.volumes.Get(name)
	if err == nil && c.isOurs(pv) && pv.DeletionTimestamp == nil && pv.Spec.ClaimRef != nil {
		err = c.place(ctx, pv)
	}
	// A change of the claim or the volume mends the others: it is in the queue, or will be.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || status.Code(err) == codes.Aborted {
		c.queue.Forget(name)
		return true
	}
	klog.FromContext(ctx).Error(err, "Placing failed, will try again", "PV", name)
	c.queue.AddRateLimited(name)
	return true
}

// place makes the node affinity of a volume fit to which nodes can be used. It leaves alone
// what has no claim, which will be deleted by the node that has it, or one that was never
// sent anywhere. The cache says whether there may be something to do, and the API server whether there is.
func (c *Controller) place(ctx context.Context, pv *corev1.PersistentVolume) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pv, err := c.confirm(ctx, pv)
	if err != nil {
		return err
	}
	var present []storagehelpers.HomeNode
	homes, _ := storagehelpers.HomeNodesOf(pv)
	if pv.Spec.NodeAffinity != nil {
		homes = nil
	}
	for _, name := range c.named(pv) {
		homes = append(homes, storagehelpers.HomeNode{Name: name})
	}
	for _, get := range []getNode{c.cached, c.live} {
		var usable bool
		if present, usable, err = presentOf(ctx, get, homes); err != nil || usable == (pv.Spec.NodeAffinity != nil) {
			return err
		}
	}
	if pv.Spec.NodeAffinity == nil {
		return c.set(ctx, pv, namesOf(present), "returned")
	}
	// Without a claim, nobody can say where it is to go.
	if _, err := c.selectedNode(ctx, pv); err != nil {
		return err
	}
	return c.release(ctx, pv, storagehelpers.FormatHomeNodes(present), strings.Join(c.named(pv), ","), "released")
}
