// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"errors"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// Nodes. Each pod with new volumes has one to itself.
const (
	togetherNode = "together"
	apartNode    = "apart"
	manyNode     = "many"
	largeNode    = "large"
	homeNode     = "home"
	fullNode     = "full"
	keptNode     = "kept"
)

var nodes = []string{togetherNode, apartNode, manyNode, largeNode, homeNode, fullNode, keptNode}

// nodeLabel has the name of a node, and is the topology of the driver.
const nodeLabel = "topology.skew.example.com/node"

// rebuildLabel is a label of the node with the volume of a drained pod, and of one without room for
// it.
const rebuildLabel = "skew.example.com/rebuild"

// newPools returns the free bytes of a node without volumes.
func newPools(node string) []int64 {
	if node == fullNode {
		return modeldriver.GiB(10)
	}
	return modeldriver.GiB(60, 40)
}

// world is a control plane without scheduler, controllers and provisioner, which come and go.
type world struct {
	writer, reader *clustertest.Server
	// drivers is for those who use the writer, users for those who use the reader.
	drivers, users *clustertest.Cluster
	driver         *modeldriver.Driver
}

// newWorld creates what an administrator and kubelets create, if it is not there yet.
func newWorld(tCtx ktesting.TContext, writer, reader *clustertest.Server) *world {
	tCtx.Helper()
	config := modeldriver.Config{Name: "skew.example.com", Rebuilding: true, Report: modeldriver.SumAndPools}
	for _, node := range nodes {
		config.Segments = append(config.Segments, modeldriver.Segment{Labels: map[string]string{nodeLabel: node}, Pools: newPools(node)})
	}
	driver, err := modeldriver.New(config)
	tCtx.ExpectNoError(err, "driver")
	w := (&world{writer: writer, reader: reader, driver: driver}).in(tCtx)
	list, err := w.drivers.Client().CoreV1().Nodes().List(tCtx, metav1.ListOptions{})
	tCtx.ExpectNoError(err, "list nodes")
	for _, segment := range config.Segments {
		if len(list.Items) > 0 {
			break
		}
		labels := map[string]string{}
		if node := segment.Name(); node == homeNode || node == fullNode {
			labels[rebuildLabel] = "true"
		}
		w.drivers.CreateNodeOf(driver.Name, segment.Name(), segment, labels)
	}
	w.createDriver()
	return w
}

// createDriver creates the CSIDriver, in place of the one that there may be.
func (w *world) createDriver() {
	w.drivers.Helper()
	err := w.drivers.Client().StorageV1().CSIDrivers().Delete(w.drivers, w.driver.Name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		w.drivers.ExpectNoError(err, "delete CSIDriver")
	}
	w.drivers.ExpectNoError(w.driver.Install(w.drivers, w.drivers.Client()), "install the driver")
}

// in returns the world for a subtest.
func (w *world) in(tCtx ktesting.TContext) *world {
	tCtx.Helper()
	in := *w
	in.users = clustertest.Connect(tCtx, w.reader)
	in.users.Patience = 2 * clustertest.Patience // for several processes on a busy machine
	in.drivers = in.users
	if w.writer != w.reader {
		in.drivers = clustertest.Connect(tCtx, w.writer)
	}
	return &in
}

// objects returns the capacity objects of a class by their nodes, as the scheduler reads them.
func (w *world) objects(ctx context.Context, class string) (map[string]storagev1.CSIStorageCapacity, error) {
	list, err := w.users.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	objects := map[string]storagev1.CSIStorageCapacity{}
	for _, o := range list.Items {
		if o.StorageClassName == class && o.NodeTopology != nil {
			objects[o.NodeTopology.MatchLabels[nodeLabel]] = o
		}
	}
	return objects, nil
}

// claims returns the names of the claims of a class, and volumes those of its volumes.
func (w *world) claims(ctx context.Context, class string) (claims, volumes []string, err error) {
	list, err1 := w.users.Client().CoreV1().PersistentVolumeClaims(w.users.Namespace).List(ctx, metav1.ListOptions{})
	pvs, err2 := w.users.Client().CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	for _, claim := range list.Items {
		if claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == class {
			claims = append(claims, claim.Name)
		}
	}
	for _, pv := range pvs.Items {
		if pv.Spec.StorageClassName == class {
			volumes = append(volumes, pv.Name)
		}
	}
	return claims, volumes, nil
}

// deletePod deletes a pod, if it is there, and waits until it is gone.
func (w *world) deletePod(name string) {
	w.users.Helper()
	pods := w.users.Client().CoreV1().Pods(w.users.Namespace)
	w.users.Eventually(func(ctx context.Context) error {
		err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("pod %s is there", name))
	})
}

// clean removes a class and what is left of it. The controllers and the provisioner have to do
// their part.
func (w *world) clean(class string, pods ...string) {
	w.users.Helper()
	for _, pod := range pods {
		w.deletePod(pod)
	}
	w.users.Eventually(func(ctx context.Context) error {
		claims, volumes, err := w.claims(ctx, class)
		for _, claim := range claims {
			err = errors.Join(err, w.users.Client().CoreV1().PersistentVolumeClaims(w.users.Namespace).Delete(ctx, claim, metav1.DeleteOptions{}))
		}
		if len(claims)+len(volumes) > 0 {
			err = errors.Join(err, fmt.Errorf("claims %q and volumes %q are there", claims, volumes))
		}
		for _, node := range []string{togetherNode, apartNode, manyNode, largeNode, homeNode} {
			if free := w.driver.Free(node); !slices.Equal(free, newPools(node)) {
				err = errors.Join(err, fmt.Errorf("%d bytes are free on node %s, want %d", free, node, newPools(node)))
			}
		}
		return err
	})
	err := w.drivers.Client().StorageV1().StorageClasses().Delete(w.drivers, class, metav1.DeleteOptions{})
	w.drivers.ExpectNoError(err, "delete the class")
	w.users.Eventually(func(ctx context.Context) error {
		objects, err := w.objects(ctx, class)
		if len(objects) > 0 {
			err = fmt.Errorf("%d CSIStorageCapacity objects of a class that is gone", len(objects))
		}
		return err
	})
}

// selectedNode returns where a claim was sent last.
func (w *world) selectedNode(claim string) string {
	w.users.Helper()
	return w.users.Claim(claim).Annotations[storagehelpers.AnnSelectedNode]
}
