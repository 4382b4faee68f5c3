package verbs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

func testStressCommand(a *App) *cobra.Command {
	var o StressOptions
	c := verb("test-stress", "Run thousands of pods against the reservation of capacity, with faults and the race detector", `
An oracle checks every decision. The driver, bindings, the scheduler and the API server
are made to fail. The seed is printed first, so that a run can be repeated. With 10000 pods
or more, it writes docs/benchmarks/stress.md.`,
		"  capacityv2 test-stress --pods 500 --seed 7", func(ctx context.Context) error { return a.TestStress(ctx, o) })
	c.Flags().IntVar(&o.Pods, "pods", 10000, "number of pods for each policy")
	c.Flags().Int64Var(&o.Seed, "seed", 0, "seed of the faults, as an earlier run has printed it; 0 takes one from the clock")
	return c
}

// StressOptions are those of TestStress.
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
			if o.Seed == 0 {
				o.Seed = time.Now().UnixNano()
			}
			s.Sayf("the same faults again: make test-stress SEED=%d PODS=%d", o.Seed, o.Pods)
			env := []string{a.binPath(), "CGO_ENABLED=1"}
			var output bytes.Buffer
			err := toolchain.Test(ctx, filepath.Join(a.WS.Root, "test-integration"), env, io.MultiWriter(s.Log, &output), a.Out, "-race", "-count=1", "-v", "-timeout", "6h",
				"-run", "^TestStress$", "./stress", fmt.Sprintf("-stress.pods=%d", o.Pods), fmt.Sprintf("-stress.seed=%d", o.Seed))
			if err != nil || o.Pods < reportedPods {
				return err
			}
			report, err := stressReport(o, output.String())
			if err != nil {
				return err
			}
			path := filepath.Join(a.benchmarks(), "stress.md")
			s.Sayf("writing %s", path)
			return os.WriteFile(path, []byte(report), 0o644)
		}},
	)...)
}

// reportedPods is from how many pods for each policy on a run is reported.
const reportedPods = 10000

// stressHead starts the report.
const stressHead = `# Pods against the reservation of capacity

Written by ` + "`make test-stress`" + ` with at least 10000 pods for each policy. This run had %d, the seed %d, and the race detector.
A third of the pods have drivers that do not confirm their reports, the others have drivers that do. For the last third
(restarts), the scheduler is also killed, another one takes over, it has to list everything again, and the API server is unreachable
for 20 seconds. [test-integration/stress](../../test-integration/stress/doc.go) says what else goes wrong, and what is checked.

Without confirmation, the policy ` + "`InFlight`" + ` may take any volume that is younger than the timeout of 10 seconds for
one that is not reported yet. The last column leaves those out.

| subtest | volumes | without room | allowed | pods torn | longest wait beside room | where the scheduler can know |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
`

var stressLine = regexp.MustCompile(`(?m)^=== RUN   TestStress/(\S+)$|(\d+) volumes, (\d+) without room, at most (\d+) are allowed; (\d+) pods torn; longest wait beside room: (\S+), where the scheduler can know: (\S+)$`)

// stressSubtest is what go test prints when a subtest for one policy has passed.
var stressSubtest = regexp.MustCompile(`(?m)^ +--- PASS: TestStress/\S+/(InFlight|Object) `)

// stressReport is the table of what the subtests say that they have seen. Each has to say
// it.
func stressReport(o StressOptions, output string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, stressHead, o.Pods, o.Seed)
	var name string
	rows := 0
	for _, m := range stressLine.FindAllStringSubmatch(output, -1) {
		if m[1] != "" {
			name = m[1]
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(m[2:], " | "))
		rows++
	}
	if ended := len(stressSubtest.FindAllString(output, -1)); rows == 0 || rows != ended {
		return "", fmt.Errorf("%d subtests of TestStress ended, and %d say what they have seen", ended, rows)
	}
	return b.String(), nil
}
