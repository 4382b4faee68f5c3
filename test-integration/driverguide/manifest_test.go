// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m, "MutablePVNodeAffinity") }

const node = "node-1"

// guide is what was made by following it.
type guide struct {
	*clustertest.Cluster
	daemonSet appsv1.DaemonSet
	pod       string // that of the DaemonSet on the node
}

// variable returns the value of an environment variable that has to be set: a skipped
// test would look like a passed one.
func variable(tCtx ktesting.TContext, name string) string {
	tCtx.Helper()
	value := os.Getenv(name)
	if value == "" {
		tCtx.Fatalf("%s is not set; make test sets it", name)
	}
	return value
}

// apply creates the objects of the guide, and does what a kubelet and the controller of
// DaemonSets would do.
func apply(c *clustertest.Cluster) guide {
	c.Helper()
	create(c, filepath.Join(variable(c.TContext.TContext, "DRIVER_GUIDE"), "my-driver.yaml"))
	g := guide{Cluster: c}
	list, err := c.Client().AppsV1().DaemonSets(metav1.NamespaceAll).List(c, metav1.ListOptions{})
	c.ExpectNoError(err, "list DaemonSets")
	if len(list.Items) != 1 {
		c.Fatalf("%d DaemonSets, want 1", len(list.Items))
	}
	g.daemonSet = list.Items[0]
	g.createPod()
	c.CreateNode(node, map[string]string{"topology.my-driver.example.com/node": node})
	return g
}

// create creates the objects of a file, those without a namespace in that of the pods.
func create(c *clustertest.Cluster, file string) {
	c.Helper()
	text, err := os.ReadFile(file)
	c.ExpectNoError(err, "read the manifest")
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			c.Fatalf("decode %s: %v", file, err)
		}
		kind := object.GroupVersionKind()
		mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		c.ExpectNoError(err, "find the resource")
		namespace := object.GetNamespace()
		if namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace = c.Namespace
		}
		_, err = c.Dynamic().Resource(mapping.Resource).Namespace(namespace).
			Create(c, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		c.ExpectNoError(err, "create an object of "+file)
	}
}

// createPod creates the pod of the DaemonSet on the node.
func (g *guide) createPod() {
	g.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: g.daemonSet.Name + "-", Namespace: g.daemonSet.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&g.daemonSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: g.daemonSet.Spec.Template.Spec,
	}
	pod.Spec.NodeName = node
	pod, err := g.Client().CoreV1().Pods(pod.Namespace).Create(g, pod, metav1.CreateOptions{})
	g.ExpectNoError(err, "create the pod of the DaemonSet")
	g.pod = pod.Name
}

// container returns one of the pod's.
func (g *guide) container(name string) corev1.Container {
	g.Helper()
	for _, c := range g.daemonSet.Spec.Template.Spec.Containers {
		if c.Name == name {
			return c
		}
	}
	g.Fatalf("the DaemonSet has no container %s", name)
	return corev1.Container{}
}

// env returns the environment of a container in the pod.
func (g *guide) env(container corev1.Container) []string {
	g.Helper()
	fields := map[string]string{"spec.nodeName": node, "metadata.namespace": g.daemonSet.Namespace, "metadata.name": g.pod}
	var env []string
	for _, e := range container.Env {
		value, ok := fields[e.ValueFrom.FieldRef.FieldPath]
		if !ok {
			g.Fatalf("the test does not know the field %s", e.ValueFrom.FieldRef.FieldPath)
		}
		env = append(env, e.Name+"="+value)
	}
	return env
}

// kubeconfig writes one with the permissions of the pod's service account.
func (g *guide) kubeconfig() string {
	g.Helper()
	return clustertest.Kubeconfig(g.TContext.TContext, g.RESTConfig(), "system:serviceaccount:"+g.daemonSet.Namespace+":"+g.daemonSet.Spec.Template.Spec.ServiceAccountName)
}
