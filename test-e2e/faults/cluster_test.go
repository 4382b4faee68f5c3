// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"capacityv2.internal/test-e2e/measure"
)

// cluster is the cluster under test.
type cluster struct {
	*measure.Cluster
	components string
	nodes      []string
	schedulers []*measure.Process
	logs       []string
	timeline   *measure.Timeline
}

// connect starts the schedulers, and the driver with the provisioner that confirms.
func connect(t *testing.T) *cluster {
	t.Helper()
	kubeconfig := os.Getenv("KUBECONFIG")
	c := &cluster{components: os.Getenv("COMPONENTS")}
	var err error
	c.Cluster, err = measure.Connect(t.Context(), kubeconfig)
	must(t, err)
	t.Cleanup(func() {
		if err := c.End(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for i, start := range []func(measure.Scheduler) (*measure.Process, error){
		func(s measure.Scheduler) (*measure.Process, error) { return s.Start(c.components) }, measure.Scheduler.StartBeside,
	} {
		log := filepath.Join(os.Getenv("FAULTS_LOGS"), []string{"scheduler-1.log", "scheduler-2.log"}[i])
		must(t, os.RemoveAll(log))
		p, err := start(measure.Scheduler{Program: filepath.Join(c.components, "kube-scheduler"), Kubeconfig: kubeconfig, Gate: true, Elect: true, Log: log, Mark: os.Getenv("CLUSTER_MARK")})
		must(t, err)
		t.Cleanup(p.End)
		c.schedulers, c.logs = append(c.schedulers, p), append(c.logs, log)
	}
	c.nodes, err = c.Nodes(t.Context())
	must(t, err)
	must(t, c.KeepOneClass(t.Context()))
	must(t, c.Configure(t.Context(), measure.Driver{Pools: []int{60, 40}, Provisioner: measure.Patched}))
	c.timeline, err = c.Record(t.Context())
	must(t, err)
	return c
}

// revive starts schedulers that have lost their lease, as an init system does.
func (c *cluster) revive(t *testing.T) {
	t.Helper()
	for _, s := range c.schedulers {
		must(t, s.Revive())
	}
}

// lostLeases is how often a scheduler has lost its lease without being killed: then one of its requests
// may come late.
func (c *cluster) lostLeases(t *testing.T) int {
	t.Helper()
	return len(c.inLogs(t, `Leaderelection lost`))
}

// panics returns the lines about panics in the logs of the schedulers.
func (c *cluster) panics(t *testing.T) []string {
	t.Helper()
	return c.inLogs(t, `panic:|Observed a panic|fatal error:`)
}

// inLogs returns the lines in the logs of the schedulers that match.
func (c *cluster) inLogs(t *testing.T, pattern string) []string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^.*(?:` + pattern + `).*$`)
	var lines []string
	for _, log := range c.logs {
		text, err := os.ReadFile(log)
		must(t, err)
		lines = append(lines, line.FindAllString(string(text), -1)...)
	}
	return lines
}

var dump = regexp.MustCompile(`(?s)Dump of storage capacity that is reserved" reservations=(".*?"|<.*?\n >)`)

// reserved is what the schedulers say that they reserve, without those that reserve nothing.
func (c *cluster) reserved(t *testing.T) []string {
	t.Helper()
	var all []string
	for i, s := range c.schedulers {
		before, err := os.ReadFile(c.logs[i])
		must(t, err)
		must(t, s.Signal(syscall.SIGUSR2))
		var last string
		waitFor(t, 10*time.Second, func() bool {
			text, err := os.ReadFile(c.logs[i])
			must(t, err)
			m := dump.FindStringSubmatch(string(text[len(before):]))
			if m != nil {
				last = m[1]
			}
			return m != nil
		})
		if last != `"nothing is in flight"` {
			all = append(all, "scheduler "+c.logs[i]+": "+last)
		}
	}
	return all
}

// kubectl runs it, also when the API server does not answer for a while.
func (c *cluster) kubectl(ctx context.Context, args ...string) error {
	return c.patiently(ctx, func(ctx context.Context) error {
		return measure.Kubectl(ctx, c.components, os.Getenv("KUBECONFIG"), args...)
	})
}

// patiently repeats something until it does not fail: the API server comes and goes.
func (c *cluster) patiently(ctx context.Context, do func(context.Context) error) error {
	var last error
	if err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = do(ctx)
		return last == nil, nil
	}); err != nil && last != nil {
		return last
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a condition holds, and reports whether it does.
func waitFor(t *testing.T, timeout time.Duration, done func() bool) bool {
	t.Helper()
	return wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, timeout, true, func(context.Context) (bool, error) { return done(), nil }) == nil
}

// others are the nodes but one.
func (c *cluster) others(home string) []string {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(node string) bool { return node == home })
}
