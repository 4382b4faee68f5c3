// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expectReady waits until the pod runs, and returns it.
func (c *cluster) expectReady(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, time.Minute, func() (err error) {
		pod, err = c.CoreV1().Pods(c.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && !isReady(pod) {
			err = fmt.Errorf("pod %s is not ready: %v", name, pod.Status.Conditions)
		}
		return err
	})
	return pod
}

func isReady(pod *corev1.Pod) bool {
	for _, cond := range pod.Status.Conditions {
		if cond.Type == corev1.PodReady {
			return cond.Status == corev1.ConditionTrue
		}
	}
	return false
}
