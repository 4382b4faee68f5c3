// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"flag"
	"fmt"
	"regexp"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

var allFlag = flag.Bool("skew.all", false, "run all combinations")

func TestMain(m *testing.M) { clustertest.Main(m) }

// kind is a way to run a program.
type kind string

const (
	// stock is the program without the series.
	stock kind = "stock"
	// off is the one of the series with the feature gate off, or without --capacity-confirmation.
	off kind = "off"
	// on is the one of the series with the feature gate on, or with --capacity-confirmation.
	on kind = "on"
	// emulated is the scheduler of the series, with the behaviour of the last minor version.
	emulated kind = "1.36"
)

// emulation has a program be emulated.
const emulation = "--emulated-version=" + string(emulated)

// kinds are in the order of an upgrade.
var kinds = []kind{stock, off, on}

// gate is the name of the feature gate. It is not taken from the tree.
const gate = "CSIStorageCapacityV2"

// gates returns the flags of a component of Kubernetes.
func (k kind) gates(more string) []string {
	switch k {
	case on:
		return []string{"--feature-gates=" + gate + "=true" + more}
	case emulated:
		return []string{emulation}
	}
	return nil
}

// program returns the path of a program of this kind.
func (k kind) program(tCtx ktesting.TContext, name string) string {
	tCtx.Helper()
	variable := "COMPONENTS"
	if k == stock {
		variable = "STOCK_COMPONENTS"
	}
	return clustertest.Program(tCtx, variable, name)
}

// checkGate compares the metrics of a program with its kind.
func (k kind) checkGate(metrics []byte) error {
	want := map[kind]string{stock: "nothing", off: "0", on: "1", emulated: "nothing"}[k]
	got := "nothing"
	if m := regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="` + gate + `",stage="\w*"\} (\d)$`).FindSubmatch(metrics); m != nil {
		got = string(m[1])
	}
	if got != want {
		return fmt.Errorf("its metrics say %s about the gate %s, want %s: it is not of the kind %q", got, gate, want, k)
	}
	return nil
}

// set is the programs of a control plane.
type set struct {
	// writer is the API server of the provisioner and the driver, reader that of the scheduler, the
	// controller-manager and the users. They are one unless their kinds differ.
	writer, reader                  kind
	scheduler, manager, provisioner kind
}

func (s set) String() string {
	server := string(s.writer)
	if s.reader != s.writer {
		server = fmt.Sprintf("%s, read from %s", s.writer, s.reader)
	}
	return fmt.Sprintf("API server %s, scheduler %s, controller-manager %s, provisioner %s", server, s.scheduler, s.manager, s.provisioner)
}
