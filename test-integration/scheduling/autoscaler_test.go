package scheduling

import (
	"os"
	"regexp"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"
	"sigs.k8s.io/yaml"

	"capacityv2.internal/test-integration/clustertest"
)

// TestAutoscalerGuide: the object of docs/autoscalers.md is one that the API server takes, and gives the
// nodes that it is for room for two volumes of 100Gi, but not for one that is larger.
func TestAutoscalerGuide(t *testing.T) {
	clustertest.ForEachPolicy(t, func(t *testing.T, options clustertest.Options) {
		page, err := os.ReadFile("../../docs/autoscalers.md")
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
		if len(blocks) != 1 {
			t.Fatalf("docs/autoscalers.md has %d blocks of YAML, want 1", len(blocks))
		}
		var object storagev1.CSIStorageCapacity
		if err := yaml.UnmarshalStrict(blocks[0][1], &object); err != nil {
			t.Fatal(err)
		}
		c := clustertest.StartWith(ktesting.Init(t), options)
		c.CreateClass(object.StorageClassName, "driver.example.com")
		c.CreateNode("template", object.NodeTopology.MatchLabels)
		_, err = c.Client().StorageV1().CSIStorageCapacities(object.Namespace).Create(c, &object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		c.ExpectNoError(err, "create the object of the guide")

		c.CreatePod(clustertest.Pod{Name: "large", Class: object.StorageClassName, Sizes: []string{"120Gi"}})
		c.ExpectNoRoom("large", 1)
		c.CreatePod(clustertest.Pod{Name: "three", Class: object.StorageClassName, Sizes: []string{"60Gi", "60Gi", "60Gi"}})
		c.ExpectNoRoom("three", 1)
		c.CreatePod(clustertest.Pod{Name: "two", Class: object.StorageClassName, Sizes: []string{"100Gi", "100Gi"}})
		c.ExpectSelected("two-0", "template")
		c.ExpectSelected("two-1", "template")
	})
}
