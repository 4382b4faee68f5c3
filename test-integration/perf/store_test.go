// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/test/integration/framework"
)

const (
	// storedAtOnce is the number of requests to etcd at once, and storedPerSecond is what the watches of the
	// scheduler can follow.
	storedAtOnce    = 32
	storedPerSecond = 5000
)

// storeObjects writes objects into etcd, as the API server stores them, and completes them. It is for
// hundreds of thousands of objects: to create them takes the API server longer than all that is measured.
func storeObjects(ctx context.Context, objects []*storagev1.CSIStorageCapacity) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{framework.GetEtcdURL()}})
	if err != nil {
		return fmt.Errorf("connect to etcd: %w", err)
	}
	defer client.Close()
	// There is one API server, which chose a prefix, and has stored something.
	first, err := client.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
	if err != nil {
		return fmt.Errorf("look for the prefix of the API server in etcd: %w", err)
	}
	if len(first.Kvs) == 0 {
		return errors.New("etcd is empty, want the objects of an API server")
	}
	prefix, _, ok := strings.Cut(string(first.Kvs[0].Key), "/registry/")
	if !ok {
		return fmt.Errorf("the first key in etcd is %q, want one below /registry/", first.Kvs[0].Key)
	}
	limiter := rate.NewLimiter(storedPerSecond, storedAtOnce)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(storedAtOnce)
	for _, object := range objects {
		if err := limiter.Wait(groupCtx); err != nil {
			return cmp.Or(group.Wait(), err)
		}
		group.Go(func() error {
			value, err := stored(object)
			if err != nil {
				return err
			}
			// Each has a revision of its own, as in a real cluster: a watch that is cut goes on after a revision.
			response, err := client.Put(groupCtx, fmt.Sprintf("%s/registry/csistoragecapacities/%s/%s", prefix, object.Namespace, object.Name), value)
			if err != nil {
				return fmt.Errorf("store CSIStorageCapacity object: %w", err)
			}
			object.ResourceVersion = strconv.FormatInt(response.Header.Revision, 10)
			return nil
		})
	}
	return group.Wait()
}

// stored completes an object except for its version, and returns what etcd has of it.
func stored(object *storagev1.CSIStorageCapacity) (string, error) {
	object.UID, object.CreationTimestamp = uuid.NewUUID(), metav1.Now()
	value := *object
	value.SetGroupVersionKind(storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"))
	if !utilfeature.DefaultFeatureGate.Enabled(features.CSIStorageCapacityV2) {
		value.AvailableCapacities = nil
	}
	data, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), &value)
	return string(data), err
}
