// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// Cordon makes a node unschedulable.
func (c *Cluster) Cordon(node string) {
	c.Helper()
	c.patchNode(node, `{"spec": {"unschedulable": true}}`)
}

// Uncordon makes a node schedulable.
func (c *Cluster) Uncordon(node string) {
	c.Helper()
	c.patchNode(node, `{"spec": {"unschedulable": null}}`)
}

// PutOutOfService taints a node as an operator does after it was shut down.
func (c *Cluster) PutOutOfService(node string) {
	c.Helper()
	c.patchNode(node, fmt.Sprintf(`{"spec": {"taints": [{"key": %q, "value": "nodeshutdown", "effect": "NoExecute"}]}}`, corev1.TaintNodeOutOfService))
}

// RemoveTaints removes all taints of a node.
func (c *Cluster) RemoveTaints(node string) {
	c.Helper()
	c.patchNode(node, `{"spec": {"taints": null}}`)
}

// DeleteNode deletes a node.
func (c *Cluster) DeleteNode(node string) {
	c.Helper()
	err := c.Client().CoreV1().Nodes().Delete(c, node, metav1.DeleteOptions{})
	c.ExpectNoError(err, "delete node")
	c.unseen = true
}

func (c *Cluster) patchNode(node, patch string) {
	c.Helper()
	_, err := c.Client().CoreV1().Nodes().Patch(c, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.ExpectNoError(err, "patch node")
	c.unseen = true
}

// Evict asks all pods of a node to go, as kubectl drain does, and returns when they
// are gone. There is no kubelet that could end them, so they have no time for it. Others may have their names then.
func (c *Cluster) Evict(node string) {
	c.Helper()
	pods := c.Client().CoreV1().Pods(c.Namespace)
	onNode := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	list, err := pods.List(c, onNode)
	c.ExpectNoError(err, "list pods")
	for _, pod := range list.Items {
		err := pods.EvictV1(c, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
		})
		c.ExpectNoError(err, "evict pod")
	}
	c.Eventually(func(ctx context.Context) error {
		list, err := pods.List(ctx, onNode)
		if err == nil && len(list.Items) > 0 {
			err = errors.New("pods of the node are not gone")
		}
		return err
	})
	c.waitForAnswers()
}
