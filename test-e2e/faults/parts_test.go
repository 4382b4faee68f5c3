// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"capacityv2.internal/test-e2e/measure"
)

// pause is how long a part stands still. It is longer than a lease of a scheduler.
const pause = 10 * time.Second

// part is one of the chain that fails.
type part struct {
	name string
	// kill ends it as a crash does, and has it start again.
	kill func() error
	// signal sends a signal to it.
	signal func(syscall.Signal) error
	// count returns how many processes it has, and all is how many it has had at the start.
	count func() (int, error)
	all   int
}

// stand has a part stand still.
func (p part) stand() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(pause)
	return p.signal(syscall.SIGCONT)
}

// parts are all that fail.
func (c *cluster) parts(t *testing.T) []part {
	t.Helper()
	var all []part
	for i, s := range c.schedulers {
		all = append(all, part{
			name: fmt.Sprintf("scheduler %d", i+1), kill: s.Crash,
			signal: func(signal syscall.Signal) error { return s.Signal(signal) },
			count:  func() (int, error) { return 1, s.Revive() },
		})
	}
	for _, path := range []string{filepath.Join(c.components, "kube-apiserver"), os.Getenv("ETCD")} {
		program, err := measure.OnHost(path, os.Getenv("CLUSTER_MARK"))
		must(t, err)
		all = append(all, part{name: filepath.Base(path), kill: program.Restart, signal: program.Signal, count: program.Count})
	}
	for _, name := range []string{"csi-provisioner", "reference-driver"} {
		program := measure.InContainers(name, os.Getenv("CLUSTER_GROUP"))
		all = append(all, part{name: name, kill: func() error { return program.Signal(syscall.SIGKILL) }, signal: program.Signal, count: program.Count})
	}
	for i := range all {
		var err error
		all[i].all, err = all[i].count()
		must(t, err)
	}
	return all
}

// fault is what happens to a part.
type fault struct {
	part
	kills bool
}

func (f fault) String() string {
	if f.kills {
		return "kill " + f.name
	}
	return fmt.Sprintf("pause %s for %s", f.name, pause)
}

// inject does it, while pods come and go, when the part runs on all nodes again.
func (f fault) inject() error {
	do := f.stand
	if f.kills {
		do = f.kill
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Second) {
		n, err := f.count()
		if err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if n == f.all {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %d of %d processes run %s after the last fault", f, n, f.all, patience)
		}
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	return nil
}
