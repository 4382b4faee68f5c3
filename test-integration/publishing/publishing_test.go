// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/storage/capacity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// cluster has one node, with one driver, which reports one number, and a class.
type cluster struct {
	*clustertest.Cluster
	driver *modeldriver.Driver
}

// start starts one without schedulers and controllers.
func start(t *testing.T) *cluster {
	t.Parallel()
	tCtx := ktesting.Init(t)
	c := &cluster{Cluster: clustertest.Connect(tCtx, clustertest.BorrowServer(tCtx, clustertest.Options{}))}
	c.Patience = 30 * time.Second
	c.driver = createDriver(c.Cluster, 1, 100, class)
	c.driver.Report = modeldriver.Sum
	return c
}

// startProvisioner starts that of the driver, in its pod, with a way to the API server.
func (c *cluster) startProvisioner(way *rest.Config, unconfirmed bool) {
	c.Helper()
	_, err := c.Client().CoreV1().Pods(modeldriver.Namespace).Create(c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: clustertest.ProvisionerPod, OwnerReferences: []metav1.OwnerReference{owner("current")}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "provisioner", Image: "none"}}, AutomountServiceAccountToken: new(false)},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err)
	startProvisioner(c.Cluster, c.driver, variant{qps: 20, unconfirmed: unconfirmed}, way,
		"--capacity-ownerref-level=1", "--capacity-poll-interval=1s", "--retry-interval-start=100ms")
}

// owner is a ReplicaSet of the Deployment with the provisioner.
func owner(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: new(true)}
}

// createObject creates what an earlier provisioner has published.
func (c *cluster) createObject(modify func(object *storagev1.CSIStorageCapacity)) {
	object := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csisc-", Labels: map[string]string{
			"csi.storage.k8s.io/drivername": c.driver.Name, "csi.storage.k8s.io/managed-by": "external-provisioner",
		}},
		StorageClassName: class,
		NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{nodeLabel: "node-1"}},
		Capacity:         resource.NewQuantity(100, resource.BinarySI),
	}
	modify(object)
	_, err := c.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).Create(c, object, metav1.CreateOptions{})
	c.ExpectNoError(err)
}

// expect waits until there is one object, which is as it has to be.
func (c *cluster) expect(check func(object *storagev1.CSIStorageCapacity) error) {
	c.Helper()
	c.expectObjects(1, check)
}

// expectObjects waits until there are so many objects, each of which is as it has to be.
func (c *cluster) expectObjects(count int, check func(object *storagev1.CSIStorageCapacity) error) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		objects, err := c.Client().StorageV1().CSIStorageCapacities(modeldriver.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(objects.Items) != count {
			err = fmt.Errorf("%d objects, want %d", len(objects.Items), count)
		}
		for i := 0; i < count && err == nil; i++ {
			err = check(&objects.Items[i])
		}
		return err
	})
}

// hasNumber checks the only number and the only owner.
func hasNumber(bytes int64) func(object *storagev1.CSIStorageCapacity) error {
	return func(object *storagev1.CSIStorageCapacity) error {
		if object.Capacity == nil || object.Capacity.Value() != bytes {
			return fmt.Errorf("capacity is %v, want %d", object.Capacity, bytes)
		}
		if len(object.OwnerReferences) != 1 || object.OwnerReferences[0].Name != "current" {
			return fmt.Errorf("owners are %v", object.OwnerReferences)
		}
		return nil
	}
}

// TestUpdateExisting checks that what a provisioner finds can be updated, and goes on to be.
func TestUpdateExisting(t *testing.T) {
	for name, tc := range map[string]struct {
		modify         func(object *storagev1.CSIStorageCapacity)
		reported, want int64
	}{
		"owned by the former ReplicaSet": {
			modify: func(object *storagev1.CSIStorageCapacity) {
				object.OwnerReferences = []metav1.OwnerReference{owner("former")}
			},
			reported: 50, want: 50,
		},
		"without capacity": {
			modify:   func(object *storagev1.CSIStorageCapacity) { object.Capacity = nil },
			reported: 50, want: 50,
		},
		"of a driver that has promised too much": {
			modify:   func(object *storagev1.CSIStorageCapacity) {},
			reported: -50, want: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			c.createObject(tc.modify)
			c.driver.SetPools("node-1", tc.reported)
			c.startProvisioner(c.RESTConfig(), true)
			c.expect(hasNumber(tc.want))
			c.driver.SetPools("node-1", 70)
			c.expect(hasNumber(70))
		})
	}
}

// TestConfirmation checks that an object says that it includes a volume although no number changes, in each version of
// its PersistentVolume while that is new.
func TestConfirmation(t *testing.T) {
	c := start(t)
	c.startProvisioner(c.RESTConfig(), false)
	c.expect(hasNumber(100))

	claim, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Create(c, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Annotations: map[string]string{volume.AnnSelectedNode: "node-1"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class), VolumeName: "volume", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err)
	pv, err := c.Client().CoreV1().PersistentVolumes().Create(c, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: c.driver.Name, VolumeHandle: "volume"}},
			ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: claim.Name, UID: claim.UID},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: nodeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err)
	reflects := func(object *storagev1.CSIStorageCapacity) error {
		version, err := capacity.ReflectedVolumes(object)
		if err != nil {
			return err
		}
		if len(version) < len(pv.ResourceVersion) || len(version) == len(pv.ResourceVersion) && version < pv.ResourceVersion {
			return fmt.Errorf("reflects volumes up to %q, want %s", version, pv.ResourceVersion)
		}
		return nil
	}
	c.expect(reflects)
	pv.Labels = map[string]string{"bound": "now"}
	pv, err = c.Client().CoreV1().PersistentVolumes().Update(c, pv, metav1.UpdateOptions{})
	c.ExpectNoError(err)
	c.expect(reflects)
	c.expect(hasNumber(100))
}

// TestClassReplaced checks that the objects of a class are removed when it comes back with another provisioner or as one that binds
// immediately, also where the provisioner did not see that it was gone.
func TestClassReplaced(t *testing.T) {
	for name, modify := range map[string]func(class *storagev1.StorageClass){
		"another provisioner": func(class *storagev1.StorageClass) { class.Provisioner = "other.example.com" },
		"immediate binding":   func(class *storagev1.StorageClass) { class.VolumeBindingMode = new(storagev1.VolumeBindingImmediate) },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			link, way := startLink(c.TContext.TContext, c.RESTConfig())
			c.startProvisioner(way, true)
			c.expect(hasNumber(100))

			link.cut()
			classes := c.Client().StorageV1().StorageClasses()
			class, err := classes.Get(c, class, metav1.GetOptions{})
			c.ExpectNoError(err)
			c.ExpectNoError(classes.Delete(c, class.Name, metav1.DeleteOptions{}))
			class.ResourceVersion = ""
			modify(class)
			_, err = classes.Create(c, class, metav1.CreateOptions{})
			c.ExpectNoError(err)
			link.mend()
			c.expectObjects(0, nil)
		})
	}
}
