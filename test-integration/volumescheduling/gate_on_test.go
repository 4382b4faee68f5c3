// Package volumescheduling is upstream's suite of that name with the feature gate
// on: for the API server, the controllers and the scheduler. make test adds
// upstream's files to this folder, through an overlay of the go command.
package volumescheduling

import (
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	testutil "k8s.io/kubernetes/test/integration/util"
)

func init() {
	if err := utilfeature.DefaultMutableFeatureGate.Set(string(features.CSIStorageCapacityV2) + "=true"); err != nil {
		panic(err)
	}
}

// TestGateIsOn checks that upstream's API server, which sets gates, has left this
// one on.
func TestGateIsOn(t *testing.T) {
	testutil.InitTestAPIServer(t, "gate-is-on", nil)
	if !utilfeature.DefaultFeatureGate.Enabled(features.CSIStorageCapacityV2) {
		t.Error("the gate is off, so the other tests have not tested it")
	}
}
