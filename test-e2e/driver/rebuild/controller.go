package rebuild

import (
	"context"
	"errors"
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
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

// interval is the shortest time between two looks at all volumes.
const interval = 500 * time.Millisecond

// Controller releases volumes whose nodes cannot be used, and puts them back.
type Controller struct {
	placer
	factory informers.SharedInformerFactory
	volumes corelisters.PersistentVolumeLister
	// changed has something while there may be something to do.
	changed chan struct{}
}

// New returns the controller of a driver, whose topology has a key.
func New(client kubernetes.Interface, driver, key string) *Controller {
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	nodes := core.Nodes().Lister()
	return &Controller{
		placer:  placer{client: client, driver: driver, key: key, node: func(_ context.Context, name string) (*corev1.Node, error) { return nodes.Get(name) }},
		factory: factory, volumes: core.PersistentVolumes().Lister(), changed: make(chan struct{}, 1),
	}
}

// Run keeps the node affinities right until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	core := c.factory.Core().V1()
	for _, informer := range []cache.SharedIndexInformer{core.Nodes().Informer(), core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.change() }, UpdateFunc: func(any, any) { c.change() }, DeleteFunc: func(any) { c.change() },
		})
		if err != nil {
			return err
		}
	}
	c.factory.Start(ctx.Done())
	defer c.factory.Shutdown()
	c.factory.WaitForCacheSync(ctx.Done())
	c.change() // Nodes may have gone while nobody watched.
	wait.UntilWithContext(ctx, c.placeAll, interval)
	return nil
}

func (c *Controller) change() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// placeAll waits for a change, and looks at all volumes in the caches.
func (c *Controller) placeAll(ctx context.Context) {
	select {
	case <-c.changed:
	case <-ctx.Done():
		return
	}
	volumes, err := c.volumes.List(labels.Everything())
	for _, pv := range volumes {
		if !c.isOurs(pv) || pv.DeletionTimestamp != nil || pv.Spec.ClaimRef == nil {
			continue
		}
		// Another change, of the claim or the volume, will mend that.
		if placeErr := c.place(ctx, pv); status.Code(placeErr) != codes.Aborted && !apierrors.IsConflict(placeErr) {
			err = errors.Join(err, placeErr)
		}
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Placing failed, will try again")
		c.change()
	}
}

// place makes the node affinity of a volume fit to which nodes can be used. It leaves alone
// what has no claim, which will be deleted by the node that has it, or one that was never
// sent anywhere.
func (c *Controller) place(ctx context.Context, pv *corev1.PersistentVolume) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pv, err := c.confirm(ctx, pv)
	if err != nil {
		return err
	}
	if pv.Spec.NodeAffinity == nil {
		homes, _ := storagehelpers.HomeNodesOf(pv)
		present, usable, err := c.present(ctx, homes)
		if err != nil || !usable {
			return err
		}
		return c.set(ctx, pv, present, "returned")
	}
	homes, err := c.homesAmong(ctx, c.named(pv)...)
	if err != nil {
		return err
	}
	if _, usable, err := c.present(ctx, homes); err != nil || usable {
		return err
	}
	if selected, err := c.selectedNode(ctx, pv); err != nil || selected == "" {
		return err
	}
	return c.release(ctx, pv, storagehelpers.FormatHomeNodes(homes), "released")
}
