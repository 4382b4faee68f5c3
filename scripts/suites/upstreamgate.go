package suites

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"capacityv2.internal/scripts/toolchain"
)

// gateTest is the file that switches the gate on. Its name sorts last, so that its
// test runs after all others.
const gateTest = "zz_capacityv2_gate_test.go"

// gateIsOn is the test in it, which is not one of the suite's.
const gateIsOn = "TestZZCapacityV2GateIsOn"

// gateOn has the name of the suite's package and gateIsOn as its arguments. The servers of the
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

func %s(t *testing.T) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.CSIStorageCapacityV2) {
		t.Error("the gate is off, so the other tests have not tested it")
	}
}
`

// switchOn adds gateOn to a suite, for the go command alone: the file and its overlay are
// written to tmp. It returns the path of the overlay.
func switchOn(ctx context.Context, tmp, tree string, suite Upstream, log io.Writer) (string, error) {
	pkg, err := toolchain.PackageName(ctx, tree, log, suite.pkg())
	if err != nil {
		return "", err
	}
	file := filepath.Join(tmp, gateTest)
	if err := os.WriteFile(file, fmt.Appendf(nil, gateOn, pkg, gateIsOn), 0o644); err != nil {
		return "", err
	}
	return toolchain.WriteOverlay(tmp, map[string]string{filepath.Join(tree, suite.pkg(), gateTest): file})
}
