// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// NodeLabel is the label whose value is the name of the node.
const NodeLabel = corev1.LabelHostname

// OnNode returns the labels with which a driver's segment, or a pod, selects one
// node.
func OnNode(name string) map[string]string { return map[string]string{NodeLabel: name} }

// CreateNode creates a node on which everything has room but storage. More
// labels may be nil.
func (c *Cluster) CreateNode(name string, labels map[string]string, taints ...corev1.Taint) {
	c.Helper()
	node := st.MakeNode().Name(name).Label(NodeLabel, name).
		// As kubelet does by default.
		Annotation(volumeutil.ControllerManagedAttachAnnotation, "true").
		Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "1000", corev1.ResourceCPU: "1000", corev1.ResourceMemory: "1000Gi"}).
		Taints(taints)
	for key, value := range labels {
		node.Label(key, value)
	}
	_, err := c.Client().CoreV1().Nodes().Create(c, node.Obj(), metav1.CreateOptions{})
	c.ExpectNoError(err, "create node")
	c.unseen = true
}

// CreateNodes creates nodes node-1 to node-n.
func (c *Cluster) CreateNodes(n int) {
	c.Helper()
	for i := range n {
		c.CreateNode(fmt.Sprintf("node-%d", i+1), nil)
	}
}

// CreateClass creates a storage class of a driver, with delayed binding.
func (c *Cluster) CreateClass(name, driver string) {
	c.Helper()
	_, err := c.Client().StorageV1().StorageClasses().Create(c, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create the class")
	c.unseen = true
}

// CreateClaim creates a claim.
func (c *Cluster) CreateClaim(name, class, size string) {
	c.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec(class, size)}
	_, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Create(c, claim, metav1.CreateOptions{})
	c.ExpectNoError(err, "create claim")
}

// DeleteClaim deletes a claim.
func (c *Cluster) DeleteClaim(name string) {
	c.Helper()
	err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Delete(c, name, metav1.DeleteOptions{})
	c.ExpectNoError(err, "delete claim")
}

// CreateVolume creates a volume of a driver that nobody has provisioned. Its handle is its name. with sets anything else.
func (c *Cluster) CreateVolume(name, class, driver, size string, with func(*st.PersistentVolumeWrapper)) {
	c.Helper()
	volume := st.MakePersistentVolume().Name(name).StorageClassName(class).
		AccessModes([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}).
		Capacity(corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}).
		PersistentVolumeSource(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}})
	with(volume)
	_, err := c.Client().CoreV1().PersistentVolumes().Create(c, volume.Obj(), metav1.CreateOptions{})
	c.ExpectNoError(err, "create volume")
}

func claimSpec(class, size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class,
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

// Claim returns a claim.
func (c *Cluster) Claim(name string) *corev1.PersistentVolumeClaim {
	c.Helper()
	claim, err := c.Client().CoreV1().PersistentVolumeClaims(c.Namespace).Get(c, name, metav1.GetOptions{})
	c.ExpectNoError(err, "get claim")
	return claim
}

// Volume returns the volume of a bound claim.
func (c *Cluster) Volume(claim string) *corev1.PersistentVolume {
	c.Helper()
	volume, err := c.Client().CoreV1().PersistentVolumes().Get(c, c.Claim(claim).Spec.VolumeName, metav1.GetOptions{})
	c.ExpectNoError(err, "get volume")
	return volume
}

// Pod describes a pod.
type Pod struct {
	Name string
	// Class is the storage class of its volumes.
	Class string
	// Sizes has one volume for each element, with a claim of its own, which
	// gets created.
	Sizes []string
	// Claims are names of claims that exist.
	Claims []string
	// Ephemeral makes generic ephemeral volumes of Sizes.
	Ephemeral bool
	// NodeSelector has the labels of the nodes that the pod may use.
	NodeSelector map[string]string
	// With sets anything else, if not nil.
	With func(*st.PodWrapper)
}

// CreatePod creates a pod and the claims of its sizes, when the scheduler knows what
// it needs to find a node for it.
func (c *Cluster) CreatePod(p Pod) {
	c.Helper()
	if c.unseen && c.scheduler != nil {
		c.WaitForScheduler()
	}
	pod := st.MakePod().Name(p.Name).Namespace(c.Namespace).Container("pause").NodeSelector(p.NodeSelector)
	for _, claim := range p.Claims {
		pod.PVC(claim)
	}
	for i, size := range p.Sizes {
		name := fmt.Sprintf("%s-%d", p.Name, i)
		if p.Ephemeral {
			pod.Volume(corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec(p.Class, size)}}}})
			continue
		}
		c.CreateClaim(name, p.Class, size)
		pod.PVC(name)
	}
	if p.With != nil {
		p.With(pod)
	}
	_, err := c.Client().CoreV1().Pods(c.Namespace).Create(c, pod.Obj(), metav1.CreateOptions{})
	c.ExpectNoError(err, "create pod")
}

// DeletePod deletes a pod and the claims of its sizes. Another one may have its name then.
func (c *Cluster) DeletePod(p Pod) {
	c.Helper()
	err := c.Client().CoreV1().Pods(c.Namespace).Delete(c, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	c.ExpectNoError(err, "delete pod")
	c.waitForAnswers()
	for i := range p.Sizes {
		c.DeleteClaim(fmt.Sprintf("%s-%d", p.Name, i))
	}
}

// waitForAnswers is for pods that were just deleted. The API server writes that a pod is to be deleted, and then deletes it. An update that
// comes in between deletes it, too, and if there is another pod of that name by then, that one (see kubernetes/kubernetes#21175).
func (c *Cluster) waitForAnswers() {
	for _, l := range c.links {
		l.WaitForAnswers()
	}
}
