package verbs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// stress runs the randomised test of capacity reservation, with so many pods for each policy and
// the race detector, which needs cgo: all of Kubernetes is compiled once more for it. The seed of
// an earlier run makes its faults again; 0 takes one from the clock.
func (a *App) stress(ctx context.Context, pods int, seed int64) error {
	if pods <= 0 {
		return run.Refuse(fmt.Sprintf("--pods is %d", pods), "a number above 0", "make nightly ONLY=stress PODS=10000")
	}
	seed = cmp.Or(seed, time.Now().UnixNano())
	return a.do(ctx, "stress", a.apply(a.buildEtcd(),
		run.Task{Name: fmt.Sprintf("%d pods for each policy, with the race detector", pods), Do: func(ctx context.Context, s *run.Step) error {
			s.Sayf("the same faults again: make nightly ONLY=stress SEED=%d PODS=%d", seed, pods)
			env := []string{a.binPath(), a.histories(), "CGO_ENABLED=1"}
			var output bytes.Buffer
			err := toolchain.Test(ctx, a.integrationTests(), env, io.MultiWriter(s.Log, &output), s.Out, "-race", "-count=1", "-v", "-timeout", "6h",
				"-run", "^TestStress$", "./stress", fmt.Sprintf("-stress.pods=%d", pods), fmt.Sprintf("-stress.seed=%d", seed))
			if err != nil {
				return err
			}
			table, err := stressTable(output.String())
			if err != nil {
				return err
			}
			return a.keepResult("stress.md", table)
		}},
	)...)
}

// stressHead starts the table. docs/benchmarks/stress.md says what the columns are.
const stressHead = `| subtest | volumes | without room | allowed | pods torn | longest wait beside room | where the scheduler can know |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
`

var stressLine = regexp.MustCompile(`(?m)^=== RUN   TestStress/(\S+)$|(\d+) volumes, (\d+) without room, at most (\d+) are allowed; (\d+) pods torn; longest wait beside room: (\S+), where the scheduler can know: (\S+)$`)

// stressSubtest is what go test prints when a subtest for one policy has passed.
var stressSubtest = regexp.MustCompile(`(?m)^ +--- PASS: TestStress/\S+/(InFlight|Object) `)

// stressTable is the table of what the subtests say that they have seen. Each has to say
// it.
func stressTable(output string) (string, error) {
	var b strings.Builder
	b.WriteString(stressHead)
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
