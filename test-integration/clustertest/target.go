// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"os"

	"k8s.io/kubernetes/test/utils/ktesting"
)

// targetEnv selects what the tests run against, see the package comment.
const targetEnv = "CAPACITYV2_TARGET"

const (
	targetPatched = ""
	targetGateOff = "gate-off"
	targetStock   = "stock"
)

// target returns the value of targetEnv and fails the test when it is none that
// we know: a typing error would otherwise pass for a proof.
func target(tCtx ktesting.TContext) string {
	tCtx.Helper()
	t := os.Getenv(targetEnv)
	switch t {
	case targetPatched, targetGateOff, targetStock:
		return t
	}
	tCtx.Fatalf("%s=%q, expected nothing, %q or %q", targetEnv, t, targetGateOff, targetStock)
	return ""
}
