// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumeNames are those of the volumes of a pod, in the order of their sizes. As for the
// pods of a StatefulSet, a claim is named "VOLUME-POD".
var volumeNames = []string{"data", "log"}

// podOf returns the pod of a claim, from its name.
func podOf(claim string) string {
	_, pod, _ := strings.Cut(claim, "-")
	return pod
}

// Database is the StatefulSet of [Cluster.CreateDatabase].
const Database = "db"

// CreatePod creates a pod with volumes of the sizes, in MiB, on a node unless that is "". What is
// there is left as it is: an API server that was killed may not have said that it has done it.
func (c *Cluster) CreatePod(ctx context.Context, name, node string, sizes ...int) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: podSpec("exec sleep 86400", len(sizes))}
	for i, size := range sizes {
		claim := c.claim(size)
		claim.Name = volumeNames[i] + "-" + name
		if _, err := c.CoreV1().PersistentVolumeClaims(c.Namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeNames[i], VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
	}
	if node != "" {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	_, err := c.CoreV1().Pods(c.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// DeletePod deletes a pod with its claims, without those that are gone.
func (c *Cluster) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := c.CoreV1().Pods(c.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for _, volume := range pod.Spec.Volumes {
		if source := volume.PersistentVolumeClaim; source != nil {
			if err := c.CoreV1().PersistentVolumeClaims(c.Namespace).Delete(ctx, source.ClaimName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// Pods returns those of the namespace.
func (c *Cluster) Pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Unschedulable returns why pods have no node, in the words of the scheduler, and for
// how many that is so.
func Unschedulable(pods []corev1.Pod) map[string]int {
	reasons := map[string]int{}
	for _, pod := range pods {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
		if i >= 0 {
			reasons[pod.Status.Conditions[i].Message]++
		}
	}
	return reasons
}

// CreateDatabase creates a StatefulSet with a volume of so many MiB for each pod. Each
// pod writes a token to its volume, if there is none, and prints it.
func (c *Cluster) CreateDatabase(ctx context.Context, replicas, size int) error {
	claim := c.claim(size)
	claim.Name = volumeNames[0]
	spec := podSpec("[ -e /data/token ] || cat /proc/sys/kernel/random/uuid > /data/token; cat /data/token; exec sleep 86400", 1)
	labels := map[string]string{"app": Database}
	_, err := c.AppsV1().StatefulSets(c.Namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: Database},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(replicas)), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claim},
		},
	}, metav1.CreateOptions{})
	return err
}

// Tokens returns what the pods of the StatefulSet have printed, without those that have
// printed nothing.
func (c *Cluster) Tokens(ctx context.Context, replicas int) map[string]string {
	tokens := map[string]string{}
	for i := range replicas {
		name := fmt.Sprintf("%s-%d", Database, i)
		log, err := c.CoreV1().Pods(c.Namespace).GetLogs(name, &corev1.PodLogOptions{}).Stream(ctx)
		if err != nil {
			continue // it has not started
		}
		token, err := io.ReadAll(log)
		log.Close()
		if text := strings.TrimSpace(string(token)); err == nil && text != "" {
			tokens[name] = text
		}
	}
	return tokens
}

// claim is one for a volume of so many MiB, without a name.
func (c *Cluster) claim(size int) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new(c.Class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(size)<<20, resource.BinarySI)}},
	}}
}

// podSpec is that of a pod which runs a command, with its volumes in /data and /log.
func podSpec(command string, volumes int) corev1.PodSpec {
	container := corev1.Container{Name: "shell", Image: "capacityv2.internal/busybox:dev", ImagePullPolicy: corev1.PullNever, Command: []string{"/bin/sh", "-c", command}}
	for _, name := range volumeNames[:volumes] {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	// Not 0: the container has to end before its pod is made again, or its volume is deleted.
	return corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{container}}
}
