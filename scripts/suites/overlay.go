package suites

import (
	"fmt"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/toolchain"
)

// gateTest is the file that switches the gate on. Its name sorts last, so that its
// test runs after all others.
const gateTest = "zz_capacityv2_gate_test.go"

// gateOn has the name of the suite's package as its argument. The servers of the
// suite copy the gates of the test binary. A default, unlike a gate that is set,
// does not stop those that emulate a version without the gate.
const gateOn = `package %s

import (
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

func init() {
	if err := utilfeature.DefaultMutableFeatureGate.OverrideDefault(features.CSIStorageCapacityV2, true); err != nil {
		panic(err)
	}
}

func TestZZCapacityV2GateIsOn(t *testing.T) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.CSIStorageCapacityV2) {
		t.Error("the gate is off, so the other tests have not tested it")
	}
}
`

// gateIsOn is the test of gateOn, which is not one of the suite's.
const gateIsOn = "TestZZCapacityV2GateIsOn"

// writeOverlay adds gateOn to the package in dir, for the go command alone: the
// file and its overlay are written to tmp. It returns the path of the overlay.
func writeOverlay(tmp, dir, pkg string) (string, error) {
	file := filepath.Join(tmp, gateTest)
	if err := os.WriteFile(file, fmt.Appendf(nil, gateOn, pkg), 0o644); err != nil {
		return "", err
	}
	return toolchain.WriteOverlay(tmp, map[string]string{filepath.Join(dir, gateTest): file})
}
