// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"testing"
	"time"

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

// withGroups returns the options of a control plane with pod groups, and with groups of these.
func withGroups(options clustertest.Options) clustertest.Options {
	options.Gates = []string{"GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"}
	options.ServerFlags = []string{"--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"}
	return options
}

// TestGang: the pods of a group share an object, and do not wait for each other.
// There must be room for all of them together.
func TestGang(t *testing.T) { clustertest.ForEachPolicyInTurn(t, testGang) }

func testGang(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), withGroups(options))
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
	c.WaitForCapacity(60 << 30)
	// Now that the room is known, the first three are what keeps the last one out.
	c.ExpectReason(second[3], 1, clustertest.Reserved)
	c.Stays(func(ctx context.Context) error {
		placed, err := c.Placed(ctx)
		if err == nil && len(placed) != 4 {
			err = fmt.Errorf("nodes of the pods: %v, want none for the second group", placed)
		}
		return err
	})
	driver.Resize("node-1", 0, 20<<30)
	driver.Publish()
	for _, pod := range second {
		c.ExpectNode(pod, "node-1")
	}
	c.ExpectNoFailures(driver)
}

// TestGroupsUnderOneRoot: two groups of pods that belong together need the same
// object. They do not wait for each other.
func TestGroupsUnderOneRoot(t *testing.T) { clustertest.ForAnyPolicyInTurn(t, testGroupsUnderOneRoot) }

func testGroupsUnderOneRoot(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), withGroups(options))
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))

	const workload, root = "workload", "root"
	_, err := c.Client().SchedulingV1beta1().Workloads(c.Namespace).Create(c, st.MakeWorkload().Name(workload).Children(
		st.MakeCompositePodGroupTemplate().Name("root").MinGroupCount(2).Children(st.MakePodGroupTemplate().Name("group").MinCount(2)),
	).Obj(), metav1.CreateOptions{})
	c.ExpectNoError(err, "create workload")
	_, err = c.Client().SchedulingV1alpha3().CompositePodGroups(c.Namespace).Create(c,
		st.MakeCompositePodGroup().Name(root).WorkloadRef(workload, "root").MinGroupCount(2).Obj(), metav1.CreateOptions{})
	c.ExpectNoError(err, "create composite pod group")
	var pods []string
	for _, group := range []string{"left", "right"} {
		_, err := c.Client().SchedulingV1beta1().PodGroups(c.Namespace).Create(c,
			st.MakePodGroup().Name(group).WorkloadRef("group", workload).ParentCompositePodGroup(root).MinCount(2).Obj(), metav1.CreateOptions{})
		c.ExpectNoError(err, "create pod group")
		for i := range 2 {
			name := fmt.Sprintf("%s-%d", group, i)
			pods = append(pods, name)
			c.CreatePod(clustertest.Pod{Name: name, Class: class, Sizes: []string{"10Gi"}, With: func(pod *st.PodWrapper) {
				pod.PodGroupName(group)
			}})
		}
	}
	for _, pod := range pods {
		c.ExpectNode(pod, "node-1")
	}
	c.CreatePod(clustertest.Pod{Name: "stranger", Class: class, Sizes: []string{"70Gi"}})
	c.ExpectReason("stranger", 1, clustertest.Reserved)
	c.ExpectNoFailures(driver)
}

// TestGroupWaitsForItself: one pod of a group has used the space that another one
// needs. When it is known to be free again, because the volume takes none, nothing
// else happens that would wake the other pod.
func TestGroupWaitsForItself(t *testing.T) {
	clustertest.ForAnyPolicyInTurn(t, testGroupWaitsForItself)
}

func testGroupWaitsForItself(t *testing.T, options clustertest.Options) {
	options.ReservationTimeout = 10 // longer than a slow machine takes for two pods that nobody keeps waiting
	c := clustertest.StartWith(ktesting.Init(t), withGroups(options))
	c.CreateNodes(1)
	config := local([]int64{100})
	config.Thin = true
	driver := c.StartDriver(config)
	group := st.MakePodGroup().Name("group").MinCount(1).Obj()
	_, err := c.Client().SchedulingV1beta1().PodGroups(c.Namespace).Create(c, group, metav1.CreateOptions{})
	c.ExpectNoError(err, "create pod group")
	begin := time.Now()
	for i := range 2 {
		name := fmt.Sprintf("pod-%d", i)
		c.CreatePod(clustertest.Pod{Name: name, Class: class, Sizes: []string{"60Gi"}, With: func(pod *st.PodWrapper) {
			pod.PodGroupName("group")
		}})
		c.ExpectNode(name, "node-1")
	}
	c.ExpectNodeAfter(begin, "pod-1", "node-1")
	c.ExpectNoFailures(driver)
}
