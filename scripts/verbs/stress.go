package verbs

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

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
			env := []string{a.binPath(), "CGO_ENABLED=1"}
			return toolchain.Test(ctx, filepath.Join(a.WS.Root, "test-integration"), env, s.Log, a.Out, "-race", "-count=1", "-v", "-timeout", "6h",
				"-run", "^TestStress$", "./stress", fmt.Sprintf("-stress.pods=%d", o.Pods), fmt.Sprintf("-stress.seed=%d", seed))
		}},
	)...)
}
