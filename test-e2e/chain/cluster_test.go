package chain

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const (
	driverImage      = "capacityv2.internal/reference-driver:dev"
	provisionerImage = "capacityv2.internal/csi-provisioner"
	driverName       = "reference.csi.capacityv2.internal"
	// dataFolder is that of a node, in the arguments of the driver's container.
	dataFolder = "/var/lib/reference-csi/chain/$(NODE_NAME)"
	// settled is how long the driver may take to begin, and the volumes of an earlier
	// scenario to end.
	settled = 2 * time.Minute
)

// cluster is the cluster under test, with a namespace for one scenario.
type cluster struct {
	kubernetes.Interface
	namespace string
	// class is a storage class of the driver.
	class string
}

// connect makes the namespace, which is deleted after the test together with all
// volumes.
func connect(t *testing.T) *cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Interface: client, namespace: "chain-" + rand.String(5)}
	classes, err := c.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range classes.Items {
		if class.Provisioner == driverName && len(class.Parameters) == 0 {
			c.class = class.Name
		}
	}
	if c.class == "" {
		t.Fatal("no storage class of the reference driver without parameters; expected: a cluster of make up DRIVER=reference")
	}
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(t) })
	return c
}

// end deletes the namespace, and waits for the end of its volumes.
func (c *cluster) end(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), settled)
	defer cancel()
	if err := c.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete namespace: %v", err)
	}
	left := 0
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		volumes, err := c.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		left = len(volumes.Items)
		return left == 0, nil
	})
	if err != nil {
		t.Errorf("%d volumes are left: %v", left, err)
	}
}

// configure gives the driver its pools, and the provisioner its image, and waits until
// the capacity of all nodes is published.
func (c *cluster) configure(t *testing.T, s setting, provisioner string) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		set := c.daemonSet(t)
		all := intstr.FromString("100%")
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &all}
		for i := range set.Spec.Template.Spec.Containers {
			container := &set.Spec.Template.Spec.Containers[i]
			switch {
			case container.Image == driverImage:
				container.Args = append(without(container.Args, "--pools", "--config", "--create-delay"), s.poolFlags()...)
				container.Args = append(container.Args, "--create-delay="+s.CreateDelay.String())
			case strings.HasPrefix(container.Image, provisionerImage+":"):
				container.Args = without(container.Args, "--capacity-poll-interval")
				if s.Poll > 0 {
					container.Args = append(container.Args, "--capacity-poll-interval="+s.Poll.String())
				}
				container.Image = provisionerImages[provisioner]
			}
		}
		_, err := c.AppsV1().DaemonSets(set.Namespace).Update(t.Context(), set, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, settled, true, func(context.Context) (bool, error) {
		last = c.configured(t, s)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// without returns arguments without the named flags.
func without(args []string, flags ...string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(flags, name)
	})
}

// configured returns what is missing until the capacity of all nodes is that of the
// setting.
func (c *cluster) configured(t *testing.T, s setting) error {
	set := c.daemonSet(t)
	status, want := set.Status, set.Status.DesiredNumberScheduled
	if status.ObservedGeneration < set.Generation || want == 0 || status.UpdatedNumberScheduled < want || status.NumberReady < want {
		return fmt.Errorf("%d of %d driver pods are ready", status.NumberReady, want)
	}
	objects, err := c.StorageV1().CSIStorageCapacities("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	n := int32(0)
	for _, o := range objects.Items {
		if o.StorageClassName == c.class && o.Capacity != nil && o.Capacity.Value() == int64(s.gib())<<30 {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d of %d capacity objects show %d GiB", n, want, s.gib())
	}
	return nil
}

// daemonSet returns the one of the driver.
func (c *cluster) daemonSet(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	sets, err := c.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.Items {
		for _, container := range set.Spec.Template.Spec.Containers {
			if container.Image == driverImage {
				return &set
			}
		}
	}
	t.Fatalf("no DaemonSet with %s; expected: a cluster of make up DRIVER=reference", driverImage)
	return nil
}

// kill ends the processes of a part of the chain as a crash does: the scheduler, which
// is started again, or containers of the nodes, which the kubelet starts again.
func (c *cluster) kill(t *testing.T, part string, s *process) {
	t.Helper()
	program := map[string]string{"provisioner": "/csi-provisioner", "driver": "/reference-driver"}[part]
	if program == "" {
		s.kill()
		s.start(t)
		return
	}
	// In a container, the path is the one of its image; the group is of this cluster.
	if killAll(t, program, "/capacityv2-") == 0 {
		t.Fatalf("no process of %s was found", program)
	}
}
