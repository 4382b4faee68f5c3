// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"sync/atomic"
	"time"

	"capacityv2.internal/test-integration/clustertest"
)

// point is where what goes on can be held up.
type point struct {
	holding atomic.Bool
	// held has what is held up. Each goes on when its channel is closed, or ends with its context.
	held chan chan struct{}
}

func newPoint() *point { return &point{held: make(chan chan struct{})} }

// pass waits while it is held up, and returns an error if that has ended with the context.
func (p *point) pass(ctx context.Context) error {
	if !p.holding.Load() {
		return nil
	}
	goOn := make(chan struct{})
	select {
	case p.held <- goOn:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-goOn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits until something is held up, and returns what it waits for.
func (p *point) wait(c *clustertest.Cluster) (goOn chan struct{}) {
	c.Helper()
	select {
	case goOn = <-p.held:
	case <-time.After(time.Minute):
		c.Fatal("nothing has come to the point")
	}
	return goOn
}
