// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
)

// cached are the paths of what programs and admission read from the cache of the API server, by the folder in etcd.
var cached = map[string]string{
	"pods": "/api/v1/pods", "minions": "/api/v1/nodes",
	"persistentvolumeclaims": "/api/v1/persistentvolumeclaims", "persistentvolumes": "/api/v1/persistentvolumes",
	"storageclasses": "/apis/storage.k8s.io/v1/storageclasses", "csidrivers": "/apis/storage.k8s.io/v1/csidrivers",
	"csinodes": "/apis/storage.k8s.io/v1/csinodes", "csistoragecapacities": "/apis/storage.k8s.io/v1/csistoragecapacities",
	"volumeattachments": "/apis/storage.k8s.io/v1/volumeattachments", "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
}

// keys returns those of all that the server stores.
func (b *borrowable) keys(ctx context.Context) (sets.Set[string], error) {
	got, err := etcd.Get(ctx, b.prefix+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	keys := sets.New[string]()
	for _, kv := range got.Kvs {
		keys.Insert(strings.TrimPrefix(string(kv.Key), b.prefix))
	}
	return keys, nil
}

// settle waits until the server has stored what it needs by itself.
func (b *borrowable) settle(ctx context.Context) error {
	own := sets.New[string]()
	return wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, programStartTimeout, true, func(ctx context.Context) (bool, error) {
		keys, err := b.keys(ctx)
		settled := err == nil && keys.Has("/services/specs/default/kubernetes") && keys.Equal(own)
		own, b.own = keys, keys
		return settled, err
	})
}

// left returns the keys of what is not the server's own.
func (b *borrowable) left(ctx context.Context) ([]string, error) {
	keys, err := b.keys(ctx)
	if err != nil {
		return nil, err
	}
	for key := range keys {
		if strings.Contains(key, "/kube-system/") { // leases that it renews
			keys.Delete(key)
		}
	}
	return sets.List(keys.Difference(b.own)), nil
}

// wipe deletes all that a test has left, whatever finalizers it has, and returns when the server does not show it any more.
func (b *borrowable) wipe(ctx context.Context) error {
	left, err := b.left(ctx)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return nil
	}
	for len(left) > 0 {
		some := left[:min(len(left), 100)] // etcd takes 128 at once
		left = left[len(some):]
		var deletions []clientv3.Op
		for _, key := range some {
			deletions = append(deletions, clientv3.OpDelete(b.prefix+key))
		}
		if _, err := etcd.Txn(ctx).Then(deletions...).Commit(); err != nil {
			return err
		}
	}
	// Deletions at once have one revision, at which a cache may still have some of the objects.
	last, err := etcd.Put(ctx, b.prefix+"-wiped", "")
	if err != nil {
		return err
	}
	revision := last.Header.Revision
	group, ctx := errgroup.WithContext(ctx)
	for folder, path := range cached {
		group.Go(func() error { return b.expectNone(ctx, folder, path, revision) })
	}
	return group.Wait()
}

// expectNone returns an error if the server shows more than its own objects of a kind. It answers when its cache has come to a
// revision of etcd.
func (b *borrowable) expectNone(ctx context.Context, folder, path string, revision int64) error {
	var text []byte
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (came bool, err error) {
		text, err = b.Client.Discovery().RESTClient().Get().AbsPath(path).Param("resourceVersion", strconv.FormatInt(revision, 10)).
			Param("resourceVersionMatch", "NotOlderThan").DoRaw(ctx)
		if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			return false, nil // the machine is busy
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", path, err)
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(text); err != nil {
		return err
	}
	for _, o := range list.Items {
		if key := strings.TrimSuffix("/"+folder+"/"+o.GetNamespace(), "/") + "/" + o.GetName(); !b.own.Has(key) {
			return fmt.Errorf("%s still shows %s", path, key)
		}
	}
	return nil
}
