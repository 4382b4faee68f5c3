package verbs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

func testStressCommand(a *App) *cobra.Command {
	var o StressOptions
	c := verb("test-stress", "Run thousands of pods against the reservation of capacity, with faults and the race detector", `
An oracle checks every decision. The driver, bindings, the scheduler and the API server
fail on the way. The seed is printed first, so that a run can be repeated.`,
		"  capacityv2 test-stress --pods 500 --seed 7", func(ctx context.Context) error { return a.TestStress(ctx, o) })
	c.Flags().IntVar(&o.Pods, "pods", 10000, "number of pods for each policy")
	c.Flags().Int64Var(&o.Seed, "seed", 0, "seed of the faults, as an earlier run has printed it; 0 takes one from the clock")
	return c
}

// StressOptions are those of Stress.
type StressOptions struct {
	// Pods is their number for each policy.
	Pods int
	// Seed makes the faults of an earlier run again; 0 takes one from the clock.
	Seed int64
}

// TestStress runs the randomised test of capacity reservation with the race
// detector, which needs cgo: all of Kubernetes is compiled once more for it.
func (a *App) TestStress(ctx context.Context, o StressOptions) error {
	if o.Pods <= 0 {
		return fmt.Errorf("--pods is %d; expected a number above 0", o.Pods)
	}
	return a.do(ctx, "test-stress", a.apply(
		progress.Task{Name: "build etcd", Do: a.buildEtcd},
		progress.Task{Name: fmt.Sprintf("%d pods for each policy, with the race detector", o.Pods), Do: func(ctx context.Context, s *progress.Step) error {
			seed := o.Seed
			if seed == 0 {
				seed = time.Now().UnixNano()
			}
			s.Sayf("the same faults again: make test-stress SEED=%d PODS=%d", seed, o.Pods)
			// Memory is there; the race detector needs the processors.
			env := []string{a.binPath(), "CGO_ENABLED=1", "GOGC=400"}
			var output bytes.Buffer
			err := toolchain.Test(ctx, filepath.Join(a.WS.Root, "test-integration"), env, io.MultiWriter(s.Log, &output), a.Out, "-race", "-count=1", "-v", "-timeout", "6h",
				"-run", "^TestStress$", "./stress", fmt.Sprintf("-stress.pods=%d", o.Pods), fmt.Sprintf("-stress.seed=%d", seed))
			for _, line := range stressResults(output.String()) {
				s.Sayf("%s", line)
			}
			return err
		}},
	)...)
}

var stressLine = regexp.MustCompile(`(?m)^=== RUN   TestStress/(\S+)$|(\d+ volumes, \d+ without room.*)$`)

// stressResults returns what the subtests say that they have seen, with their names.
func stressResults(output string) []string {
	var name string
	var lines []string
	for _, m := range stressLine.FindAllStringSubmatch(output, -1) {
		if m[1] != "" {
			name = m[1]
		} else {
			lines = append(lines, name+": "+m[2])
		}
	}
	return lines
}
