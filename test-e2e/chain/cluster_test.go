package chain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"capacityv2.internal/test-e2e/measure"
)

// cluster is the cluster under test, with what one scenario needs.
type cluster struct {
	*measure.Cluster
	scheduler *measure.Process
	timeline  *measure.Timeline
	nodes     []string
}

// connect prepares a scenario: a namespace, which is deleted after the test together
// with all volumes, the scheduler, and the driver with its pools.
func connect(t *testing.T, s setting, v variant) *cluster {
	t.Helper()
	var c cluster
	var err error
	c.Cluster, err = measure.Connect(t.Context(), os.Getenv("KUBECONFIG"))
	must(t, err)
	t.Cleanup(func() {
		if err := c.End(t.Context()); err != nil {
			t.Error(err)
		}
	})
	components := os.Getenv("COMPONENTS")
	// The pods of the driver need a scheduler, too.
	c.scheduler, err = measure.Scheduler{
		Program: filepath.Join(components, "kube-scheduler"), Kubeconfig: os.Getenv("KUBECONFIG"), Policy: v.policy,
		Log: filepath.Join(os.Getenv("CHAIN_LOGS"), "scheduler-"+strings.ReplaceAll(t.Name(), "/", "-")+".log"),
	}.Start(components)
	must(t, err)
	t.Cleanup(c.scheduler.End)
	c.nodes, err = c.Nodes(t.Context())
	must(t, err)
	must(t, c.KeepOneClass(t.Context()))
	must(t, c.Configure(t.Context(), row{s, v}.driver()))
	c.timeline, err = c.Record(t.Context())
	must(t, err)
	return &c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a condition holds, and goes on without it after a time: the
// result says what has not happened.
func waitFor(t *testing.T, timeout time.Duration, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, timeout, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Logf("after %s, it has not happened", timeout)
	}
}

// kubectl runs it, and says what it printed if it fails: a drain that does not end is
// seen in the result.
func kubectl(t *testing.T, args ...string) {
	// Also when the test is over, to undo what it has done.
	if err := measure.Kubectl(context.WithoutCancel(t.Context()), os.Getenv("COMPONENTS"), os.Getenv("KUBECONFIG"), args...); err != nil {
		t.Log(err)
	}
}
