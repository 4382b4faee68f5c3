package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// TestProfilesShareReservations: two pods compete for an object. It does not help
// that a profile of its own schedules each of them.
func TestProfilesShareReservations(t *testing.T) {
	const second = "second-scheduler"
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{Configure: func(scheduler *config.KubeSchedulerConfiguration) {
		profile := scheduler.Profiles[0].DeepCopy()
		profile.SchedulerName = second
		scheduler.Profiles = append(scheduler.Profiles, *profile)
	}})
	c.CreateNodes(1)
	driver := c.StartDriver(unpublished([]int64{100}))

	rival := map[string]string{corev1.DefaultSchedulerName: second, second: corev1.DefaultSchedulerName}
	for scheduler := range rival {
		c.CreatePod(clustertest.Pod{Name: scheduler, Class: class, Sizes: []string{"20Gi"}, With: func(pod *st.PodWrapper) {
			pod.SchedulerName(scheduler)
		}})
	}
	c.WaitForPlaced(1)
	placed, err := c.Placed(c)
	c.ExpectNoError(err, "list pods")
	for scheduler := range placed {
		c.ExpectReason(rival[scheduler], 1, clustertest.Reserved)
	}

	driver.Publish()
	c.WaitForPlaced(2)
	expectNoFailures(c, driver)
}
