package scheduling

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// createGang creates pods, with a volume each, that get scheduled together or not
// at all, and returns their names.
func createGang(c *clustertest.Cluster, name string, pods int, size string) []string {
	c.Helper()
	group := st.MakePodGroup().Name(name).MinCount(int32(pods)).Obj()
	_, err := c.Client().SchedulingV1beta1().PodGroups(c.Namespace).Create(c, group, metav1.CreateOptions{})
	c.ExpectNoError(err, "create pod group")
	names := make([]string, pods)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", name, i)
		c.CreatePod(clustertest.Pod{Name: names[i], Class: class, Sizes: []string{size}, With: func(pod *st.PodWrapper) {
			pod.PodGroupName(name)
		}})
	}
	return names
}

// gangFlags turn pod groups on.
var gangFlags = []string{
	"--feature-gates=GenericWorkload=true",
	"--runtime-config=scheduling.k8s.io/v1beta1=true",
}

// TestGang: the pods of a group share an object, and do not wait for each other.
// There must be room for all of them together.
func TestGang(t *testing.T) { clustertest.ForEachPolicy(t, testGang) }

func testGang(t *testing.T, options clustertest.Options) {
	options.ServerFlags = gangFlags
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))

	for _, pod := range createGang(c, "first", 4, "10Gi") {
		c.ExpectNode(pod, "node-1")
	}

	// There are 60 GiB, but other groups do not know. Three pods would fit.
	second := createGang(c, "second", 4, "20Gi")
	if c.IsObject() {
		c.ExpectReason(second[0], 1, clustertest.Reserved)
	} else {
		c.ExpectReason(second[3], 1, clustertest.Reserved)
	}
	driver.Publish()
	c.ExpectNoRoom(second[3], 1)
	placed, err := c.Placed(c)
	c.ExpectNoError(err, "list pods")
	if len(placed) != 4 {
		c.Errorf("nodes of the pods: %v, want none for the second group", placed)
	}
	driver.Resize(0, 0, 20<<30)
	driver.Publish()
	for _, pod := range second {
		c.ExpectNode(pod, "node-1")
	}
	expectNoFailures(c, driver)
}
