// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// DriverName is that of the reference driver.
const DriverName = "reference.csi.capacityv2.internal"

// settled is how long the driver may take to begin, and volumes to end.
const settled = 2 * time.Minute

// Cluster is one with the reference driver (make up DRIVER=reference), with a
// namespace for one scenario.
type Cluster struct {
	kubernetes.Interface
	Namespace string
	// Class is the storage class of the driver that uses all pools.
	Class string
}

// Connect makes a namespace in the cluster of a kubeconfig.
func Connect(ctx context.Context, kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Interface: client, Namespace: "chain-" + rand.String(5)}
	classes, err := c.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, class := range classes.Items {
		if class.Provisioner == DriverName && len(class.Parameters) == 0 {
			c.Class = class.Name
		}
	}
	if c.Class == "" {
		return nil, errors.New("no storage class of the reference driver without parameters; expected: a cluster of make up DRIVER=reference")
	}
	_, err = c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}, metav1.CreateOptions{})
	return c, err
}

// KeepOneClass deletes the driver's other classes: they would share its pools, and each
// has objects of its own to write.
func (c *Cluster) KeepOneClass(ctx context.Context) error {
	classes, err := c.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, class := range classes.Items {
		if class.Provisioner == DriverName && class.Name != c.Class {
			if err := c.StorageV1().StorageClasses().Delete(ctx, class.Name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// End deletes the namespace, and waits for the end of all volumes.
func (c *Cluster) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settled)
	defer cancel()
	if err := c.CoreV1().Namespaces().Delete(ctx, c.Namespace, metav1.DeleteOptions{}); err != nil {
		return err
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
		return fmt.Errorf("%d volumes are left: %w", left, err)
	}
	return nil
}

// Kubectl runs the one in the folder components. The error has what it printed.
func Kubectl(ctx context.Context, components, kubeconfig string, args ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(components, "kubectl"), append(args, "--kubeconfig="+kubeconfig)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Nodes returns the names of all nodes.
func (c *Cluster) Nodes(ctx context.Context) ([]string, error) {
	list, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names, nil
}
