// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"
	"sigs.k8s.io/yaml"

	"capacityv2.internal/test-integration/clustertest"
)

// TestAutoscalerGuide: the object of docs/how-to/autoscalers.md is one that the API server takes, and gives the
// nodes that it is for room for two volumes of 100Gi, but not for one that is larger.
func TestAutoscalerGuide(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		object := guideObject(t)
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateUnserved(object.StorageClassName, "driver.example.com")
		c.CreateNode("template", object.NodeTopology.MatchLabels)
		publish(c, object)

		c.CreatePod(clustertest.Pod{Name: "large", Class: object.StorageClassName, Sizes: []string{"120Gi"}})
		c.ExpectNoRoom("large", 1)
		c.CreatePod(clustertest.Pod{Name: "three", Class: object.StorageClassName, Sizes: []string{"60Gi", "60Gi", "60Gi"}})
		c.ExpectNoRoom("three", 1)
		c.CreatePod(clustertest.Pod{Name: "two", Class: object.StorageClassName, Sizes: []string{"100Gi", "100Gi"}})
		c.ExpectSelected("two-0", "template")
		c.ExpectSelected("two-1", "template")
	})
}

// guideObject returns the object of docs/how-to/autoscalers.md.
func guideObject(t *testing.T) *storagev1.CSIStorageCapacity {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/autoscalers.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/how-to/autoscalers.md has %d blocks of YAML, want 1", len(blocks))
	}
	object := &storagev1.CSIStorageCapacity{}
	if err := yaml.UnmarshalStrict(blocks[0][1], object); err != nil {
		t.Fatal(err)
	}
	return object
}

func publish(c *clustertest.Cluster, object *storagev1.CSIStorageCapacity) {
	c.Helper()
	_, err := c.Client().StorageV1().CSIStorageCapacities(object.Namespace).Create(c, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	c.ExpectNoError(err, "create the object of the guide")
}

// startupTaint is on a new node until its driver has reported.
var startupTaint = corev1.Taint{Key: "startup-taint.cluster-autoscaler.kubernetes.io/storage", Effect: corev1.TaintEffectNoSchedule}

// TestStartupTaint: a node joins, with a startup taint or without one, and its driver reports later. The object for template
// nodes is there from the beginning, and is not for this node. With the taint, a pod waits for its removal, before the first
// report and after it. Without it, the pod is tried before the first report, finds no room, and is woken by that report.
func TestStartupTaint(t *testing.T) {
	for name, taints := range map[string][]corev1.Taint{"with": {startupTaint}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
				c := clustertest.StartWith(ktesting.Init(t), options)
				config := local([]int64{100, 100})
				c.CreateUnserved(class, config.Name)
				template := guideObject(t)
				template.StorageClassName = class
				publish(c, template)
				c.CreateNode("node-1", nil, taints...)
				c.CreatePod(clustertest.Pod{Name: "waiting", Class: class, Sizes: []string{"60Gi", "60Gi"}})
				if len(taints) == 0 {
					c.ExpectNoRoom("waiting", 1)
					driver := c.StartDriver(config)
					c.ExpectNode("waiting", "node-1")
					c.ExpectNoFailures(driver)
					return
				}
				expectTainted(c, "waiting")
				driver := c.StartDriver(config)
				c.WaitForScheduler()
				expectTainted(c, "waiting")
				c.CreatePod(clustertest.Pod{Name: "later", Class: class, Sizes: []string{"30Gi"}})
				expectTainted(c, "later")

				c.RemoveTaints("node-1")
				c.ExpectNode("waiting", "node-1")
				c.ExpectNode("later", "node-1")
				c.ExpectNoFailures(driver)
			})
		})
	}
}

// expectTainted waits until a pod was rejected for the taint of the only node, and checks that it goes on waiting for that.
func expectTainted(c *clustertest.Cluster, pod string) {
	c.Helper()
	c.ExpectReason(pod, 1, clustertest.Tainted)
	c.Stays(func(context.Context) error { return c.HasReason(pod, 1, clustertest.Tainted) })
}

// TestSimulatedReserve: an autoscaler that runs Reserve, as for pods with resource claims, and never unreserves. The pods count
// once, where the simulator has put them, and nothing is left when it reverts.
func TestSimulatedReserve(t *testing.T) {
	clustertest.ForAnyPolicy(t, func(t *testing.T, options clustertest.Options) {
		c := clustertest.StartWith(ktesting.Init(t), options)
		object := guideObject(t)
		c.CreateUnserved(object.StorageClassName, "driver.example.com")
		publish(c, object)
		c.CreateNode("existing", clustertest.TemplateNodes, startupTaint)
		for i, pod := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			c.CreatePod(clustertest.Pod{Name: pod, Class: object.StorageClassName, Sizes: []string{map[bool]string{true: "100Gi", false: "50Gi"}[i < 3]}})
		}
		s := c.NewSimulator("template-1", "template-2", "existing")
		s.Place("a", "template-1")
		s.Place("b", "template-1")
		s.ExpectRefused("c", "template-1", clustertest.NoRoom)
		s.Place("c", "template-2")
		s.Revert()
		s.Reserve("a", "template-1")
		s.Reserve("b", "template-1")
		s.ExpectRefused("c", "template-1", clustertest.NoRoom)
		s.Place("c", "template-2")
		s.Revert()
		s.ExpectFits("c", "template-1")
		// Upstream's cache has the node that was selected for its claim, which does not exist.
		s.ExpectFits("a", "template-2")

		s.Reserve("d", "existing")
		s.Place("e", "existing")
		s.Place("f", "existing")
		s.ExpectRefused("c", "existing", clustertest.NoRoom)
		s.Place("g", "existing")
		s.Revert()
		s.ExpectFits("c", "existing")
		s.ExpectFits("c", "template-1")
	})
}
