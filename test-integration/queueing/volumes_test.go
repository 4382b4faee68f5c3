// Package queueing runs upstream's cases for the queueing hints of volumes with
// the feature gate on: for the API server and the scheduler.
package queueing

import (
	"slices"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/integration/scheduler/queueing"
)

func TestMain(m *testing.M) {
	framework.EtcdMain(m.Run)
}

// TestVolumeBindingHints takes the cases of upstream's TestCoreResourceEnqueue
// which only VolumeBinding can reject.
func TestVolumeBindingHints(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.CSIStorageCapacityV2, true)
	cases := 0
	for _, tc := range queueing.CoreResourceEnqueueTestCases {
		if slices.Equal(tc.EnablePlugins, []string{names.VolumeBinding}) {
			cases++
			t.Run(tc.Name, func(t *testing.T) {
				queueing.RunTestCoreResourceEnqueue(t, tc)
				if !utilfeature.DefaultFeatureGate.Enabled(features.CSIStorageCapacityV2) {
					t.Error("the gate is off, so nothing was tested")
				}
			})
		}
	}
	if cases == 0 {
		t.Error("upstream has no case that enables VolumeBinding alone")
	}
}
