package verbs

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"time"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/run"
)

// faults kills and pauses the parts of a cluster of its own, under load. The seed of an earlier run
// gives their order again; 0 takes one from the clock.
func (a *App) faults(ctx context.Context, seed int64) error {
	seed = cmp.Or(seed, time.Now().UnixNano())
	return a.onChain(ctx, "nightly ONLY=faults", nil, func(st cluster.Status) error {
		scrapes, picture := filepath.Join(a.WS.Logs(), "scrapes"), filepath.Join(a.WS.Logs(), "dashboard.svg")
		return a.do(ctx, "faults", run.Task{Name: "faults under load", Do: func(ctx context.Context, s *run.Step) error {
			s.Sayf("the same faults again: make nightly ONLY=faults SEED=%d", seed)
			env := []string{"CLUSTER_MARK=" + st.Mark, "ETCD=" + filepath.Join(a.WS.Bin(), "etcd"),
				"FAULTS_LOGS=" + a.WS.Logs(), "FAULTS_SCRAPES=" + scrapes, "FAULTS_SEED=" + strconv.FormatInt(seed, 10)}
			return a.testCluster(ctx, st, env, s.Log, s.Out, "-timeout", "1h", "-v", "-run", "^TestFaults$", "./faults")
		}}, run.Task{Name: "draw the dashboard", Do: func(ctx context.Context, s *run.Step) error {
			s.Sayf("as it was meanwhile: %s", picture)
			return run.Cmd{Name: "go", Args: []string{"run", ".", "-draw", picture, filepath.Join(a.WS.Root, "docs", "monitoring"), scrapes},
				Dir: filepath.Join(a.integrationTests(), "promcheck"), Env: []string{"GOWORK=off"}, Log: s.Log}.Run(ctx)
		}})
	})
}
