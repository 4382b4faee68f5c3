// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// A volume is looked at again after the one, then twice that, up to the other.
	firstRetry = 500 * time.Millisecond
	lastRetry  = time.Minute
	// lookTime is how long one look may take.
	lookTime = 30 * time.Second
)

// Loop looks at volumes, which informers add to its queue.
type Loop struct {
	informers.SharedInformerFactory
	workqueue.TypedRateLimitingInterface[string]
}

// NewLoop returns one without informers.
func NewLoop(client kubernetes.Interface) Loop {
	return Loop{
		informers.NewSharedInformerFactory(client, 0),
		workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}
}

// On calls a function with each object that is made, changed or deleted, and with what it was before it was changed.
func (l Loop) On(informer cache.SharedIndexInformer, changed func(before, now any)) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(now any) { changed(nil, now) }, UpdateFunc: changed,
		DeleteFunc: func(last any) {
			if gone, ok := last.(cache.DeletedFinalStateUnknown); ok {
				last = gone.Obj
			}
			changed(nil, last)
		},
	})
	return err
}

// Run looks at volumes until the context ends, at some of them side by side. After an error, it looks again.
func (l Loop) Run(ctx context.Context, workers int, look func(ctx context.Context, volume string) error) {
	l.Start(ctx.Done())
	defer l.Shutdown()
	l.WaitForCacheSync(ctx.Done())
	defer context.AfterFunc(ctx, l.ShutDown)()
	all := sync.WaitGroup{}
	for range workers {
		all.Go(func() {
			for l.next(ctx, look) {
			}
		})
	}
	all.Wait()
}

func (l Loop) next(ctx context.Context, look func(ctx context.Context, volume string) error) bool {
	volume, isEnded := l.Get()
	if isEnded {
		return false
	}
	defer l.Done(volume)
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err := look(ctx, volume)
	if err == nil {
		l.Forget(volume)
		return true
	}
	if !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("Volume is not as it should be, will look again", "volume", volume, "reason", err)
	}
	l.AddRateLimited(volume)
	return true
}
