// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const gateFlag = "--feature-gates=" + gate + "=true"

// withReservation is a configuration of the scheduler with the argument of the series.
const withReservation = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: VolumeBinding
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: VolumeBindingArgs
      capacityReservation: {policy: InFlight}
`

// refusal is a program that must not start.
type refusal struct {
	kind    kind
	program string
	// with is the flags as the table shows them, flags what they are.
	with  string
	flags []string
	// says has to be in its output.
	says string
}

// refusals are what a program is told that it does not know.
func refusals(config string) []refusal {
	unknown := "unrecognized feature gate: " + gate
	return []refusal{
		{stock, apiServer, gateFlag, []string{gateFlag, "--etcd-servers=http://127.0.0.1:0", "--cert-dir=/nonexistent"}, unknown},
		{stock, scheduler, gateFlag, []string{gateFlag}, unknown},
		{stock, manager, gateFlag, []string{gateFlag}, unknown},
		{stock, scheduler, "capacityReservation", []string{"--config=" + config}, `unknown field "capacityReservation"`},
		{stock, provisioner, "--capacity-confirmation", []string{"--capacity-confirmation"}, "unknown flag: --capacity-confirmation"},
		{off, scheduler, "capacityReservation", []string{"--config=" + config}, "unexpected field `capacityReservation`, remove it or turn on the feature gate " + gate},
		{off, scheduler, gateFlag + " " + emulation, []string{gateFlag, emulation}, "cannot set feature gate " + gate + " to true, feature is PreAlpha at emulated version 1.36"},
	}
}

// TestRefusals checks that a program that does not have the feature does not start with its gate, its
// argument or its flag, and says why. One that starts without it would be worse.
func TestRefusals(t *testing.T) {
	tCtx := ktesting.Init(t)
	for _, r := range refusals(clustertest.WriteSchedulerConfig(tCtx, withReservation)) {
		if !*allFlag && !r.isOften() {
			continue
		}
		ctx, cancel := context.WithTimeout(tCtx, time.Minute)
		output, err := exec.CommandContext(ctx, r.kind.program(tCtx, r.program), r.flags...).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if says := strings.ReplaceAll(string(output), `\"`, `"`); !errors.As(err, &exit) || exit.ExitCode() < 1 || !strings.Contains(says, r.says) {
			t.Errorf("%s of the kind %q with %q: %v and the output %s; want an error with %q", r.program, r.kind, r.flags, err, output, r.says)
		}
	}
}

// isOften tells whether the program is built for a run of a few combinations.
func (r refusal) isOften() bool {
	return r.kind != stock || r.program == apiServer || r.program == scheduler
}

// row is that of a table in docs/reference/skew-results.md.
func (r refusal) row() string {
	return fmt.Sprintf("| %s, %s | `%s` | %s |\n", r.program, r.kind, r.with, r.says)
}
