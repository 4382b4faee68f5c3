// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// TestGenericEphemeralVolumes: claims that a controller makes from the pod are
// evaluated jointly, too.
func TestGenericEphemeralVolumes(t *testing.T) {
	clustertest.ForAnyPolicy(t, testGenericEphemeralVolumes)
}

func testGenericEphemeralVolumes(t *testing.T, options clustertest.Options) {
	ephemeral := func(name string) clustertest.Pod {
		pod := volumes(name, "60Gi", "60Gi")
		pod.Ephemeral = true
		return pod
	}
	testPlaces(t, options, local([]int64{119, 59}, []int64{60, 60}),
		place{pod: ephemeral("first"), node: "node-2"},
		place{pod: ephemeral("second"), full: 2})
}

// TestStaticAndDynamicVolumes: a claim that gets a volume which exists needs no
// room.
func TestStaticAndDynamicVolumes(t *testing.T) {
	clustertest.ForAnyPolicy(t, testStaticAndDynamicVolumes)
}

func testStaticAndDynamicVolumes(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(2)
	driver := c.StartDriver(local([]int64{60, 60}, []int64{119, 60}))
	c.CreateVolume("static", class, driver.Name, "60Gi", func(pv *st.PersistentVolumeWrapper) {
		pv.NodeAffinityIn(clustertest.NodeLabel, []string{"node-1"})
	})
	c.Eventually(func(ctx context.Context) error {
		got, err := c.Client().CoreV1().PersistentVolumes().Get(ctx, "static", metav1.GetOptions{})
		if err == nil && got.Status.Phase != corev1.VolumeAvailable {
			err = fmt.Errorf("volume is %q, want it available", got.Status.Phase)
		}
		return err
	})

	sizes := []string{"60Gi", "60Gi", "60Gi"}
	c.CreatePod(clustertest.Pod{Name: "dynamic", Class: class, Sizes: sizes, NodeSelector: clustertest.OnNode("node-2")})
	c.ExpectNoRoom("dynamic", 1)
	c.CreatePod(clustertest.Pod{Name: "mixed", Class: class, Sizes: sizes, NodeSelector: clustertest.OnNode("node-1")})
	c.ExpectNode("mixed", "node-1")
	if driver.Provisioned() != 2 {
		c.Errorf("%d volumes were provisioned, want 2", driver.Provisioned())
	}
	c.ExpectNoFailures(driver)
}

// TestTwoClasses: the volumes of each class are a group of their own.
func TestTwoClasses(t *testing.T) { clustertest.ForAnyPolicy(t, testTwoClasses) }

func testTwoClasses(t *testing.T, options clustertest.Options) {
	c := clustertest.StartWith(ktesting.Init(t), options)
	c.CreateNodes(1)
	fast := local([]int64{50, 50})
	fast.Name, fast.Classes = "fast.example.com", []string{"fast"}
	slow := local([]int64{119})
	slow.Name, slow.Classes = "slow.example.com", []string{"slow"}
	drivers := []*modeldriver.Driver{c.StartDriver(fast), c.StartDriver(slow)}

	c.CreateClaim("fast-0", "fast", "50Gi")
	c.CreateClaim("fast-1", "fast", "50Gi")
	c.CreateClaim("slow-0", "slow", "60Gi")
	c.CreateClaim("slow-1", "slow", "60Gi")
	c.CreatePod(clustertest.Pod{Name: "slow-is-full", Claims: []string{"fast-0", "slow-0", "slow-1"}})
	c.ExpectNoRoom("slow-is-full", 1)
	c.CreatePod(clustertest.Pod{Name: "fits", Claims: []string{"fast-0", "slow-0", "fast-1"}})
	c.ExpectNode("fits", "node-1")
	for _, driver := range drivers {
		c.ExpectNoFailures(driver)
	}
}
