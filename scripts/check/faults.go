// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// seed is that of an earlier run, or one from the clock.
func seed(variable string) string {
	return cmp.Or(os.Getenv(variable), fmt.Sprint(time.Now().UnixNano()))
}

// faults kills and pauses the parts of a cluster of its own, under load.
func faults(ctx context.Context, ws workspace.Workspace) error {
	seed := seed("FAULTS_SEED")
	return cluster.OnOwn(ctx, ws, "e2e LONG=1", nil, func(st local.Status) error {
		return ws.Run(ctx, "faults", run.Task{Name: "faults under load", Do: func(ctx context.Context, s *run.Step) error {
			s.Sayf("the same faults again: FAULTS_SEED=%s make e2e LONG=1", seed)
			env := []string{"CLUSTER_MARK=" + st.Mark, "ETCD=" + filepath.Join(ws.Bin(), "etcd"),
				"FAULTS_LOGS=" + ws.Logs(), "FAULTS_SEED=" + seed}
			return testCluster(ctx, ws, st, env, s.Log, s.Out, "-timeout", "1h", "-v", "-run", "^TestFaults$", "./faults")
		}})
	})
}
