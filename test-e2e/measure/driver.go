// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

const (
	driverImage      = "capacityv2.internal/reference-driver:dev"
	provisionerImage = "capacityv2.internal/csi-provisioner"
	// confirmationFlag is one of the patched provisioner only.
	confirmationFlag = "--capacity-confirmation"
)

// Provisioner is an image of external-provisioner, by its tag.
type Provisioner string

const (
	// Stock is the one that was released.
	Stock Provisioner = "stock"
	// Patched publishes pools and confirms its reports.
	Patched Provisioner = "dev"
)

// Driver is how the driver and its provisioner run.
type Driver struct {
	// Pools are those of each node, in MiB.
	Pools       []int
	Provisioner Provisioner
}

// mib is what is free on an empty node, in MiB.
func (d Driver) mib() int64 {
	total := 0
	for _, pool := range d.Pools {
		total += pool
	}
	return int64(total)
}

// flags are those of the driver's container.
func (d Driver) flags() (flags []string) {
	for i, pool := range d.Pools {
		flags = append(flags, fmt.Sprintf("--pools=p%d=%dMi", i, pool))
	}
	return flags
}

// Configure runs the driver as described, and waits until the capacity of all nodes is
// published.
func (c *Cluster) Configure(ctx context.Context, d Driver) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		set, err := c.daemonSet(ctx)
		if err != nil {
			return err
		}
		all := intstr.FromString("100%")
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &all}
		for i := range set.Spec.Template.Spec.Containers {
			container := &set.Spec.Template.Spec.Containers[i]
			switch {
			case container.Image == driverImage:
				container.Args = append(without(container.Args, "--pools"), d.flags()...)
			case strings.HasPrefix(container.Image, provisionerImage+":"):
				container.Args = append(without(container.Args, "--http-endpoint", confirmationFlag), fmt.Sprintf("--http-endpoint=:%d", provisionerPort))
				if d.Provisioner == Patched {
					container.Args = append(container.Args, confirmationFlag)
				}
				container.Image = provisionerImage + ":" + string(d.Provisioner)
			}
		}
		_, err = c.AppsV1().DaemonSets(set.Namespace).Update(ctx, set, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, settled, true, func(ctx context.Context) (bool, error) {
		last = c.configured(ctx, d.mib())
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// without returns arguments without the named flags.
func without(args []string, flags ...string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(flags, name)
	})
}

// configured returns what is missing until all provisioners run, and all nodes show so much capacity.
func (c *Cluster) configured(ctx context.Context, mib int64) error {
	set, err := c.daemonSet(ctx)
	if err != nil {
		return err
	}
	status, want := set.Status, set.Status.DesiredNumberScheduled
	if status.ObservedGeneration < set.Generation || want == 0 || status.UpdatedNumberScheduled < want || status.NumberReady < want {
		return fmt.Errorf("%d of %d driver pods are ready", status.NumberReady, want)
	}
	if err := c.shows(ctx, slices.Repeat([]int64{mib}, int(want))); err != nil {
		return err
	}
	// The objects may be those of the pods before.
	return c.provisionersAnswer(ctx)
}

// WaitForCapacity waits until the nodes show so many MiB, in any order.
func (c *Cluster) WaitForCapacity(ctx context.Context, mib ...int64) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, settled, true, func(ctx context.Context) (bool, error) {
		last = c.shows(ctx, mib)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// shows returns an error unless the nodes show so many MiB.
func (c *Cluster) shows(ctx context.Context, want []int64) error {
	objects, err := c.StorageV1().CSIStorageCapacities("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var got []int64
	for _, o := range objects.Items {
		if o.StorageClassName == c.Class && o.Capacity != nil {
			got = append(got, o.Capacity.Value()>>20)
		}
	}
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		return fmt.Errorf("capacity objects show %v MiB, expected %v", got, want)
	}
	return nil
}

// driverPods returns those of its DaemonSet.
func (c *Cluster) driverPods(ctx context.Context) ([]corev1.Pod, error) {
	set, err := c.daemonSet(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := c.CoreV1().Pods(set.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// daemonSet returns the one of the driver.
func (c *Cluster) daemonSet(ctx context.Context) (*appsv1.DaemonSet, error) {
	sets, err := c.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, set := range sets.Items {
		for _, container := range set.Spec.Template.Spec.Containers {
			if container.Image == driverImage {
				return &set, nil
			}
		}
	}
	return nil, fmt.Errorf("no DaemonSet with %s; expected: a cluster of make up DRIVER=reference", driverImage)
}
