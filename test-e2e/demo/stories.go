// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"capacityv2.internal/test-e2e/measure"
)

// story is one of the KEP's.
type story struct {
	Number int
	// Name is it in short, Title is what happens, Room why so many pods can run.
	Name, Title, Room string
	// Pools are those of each of the three nodes, in MiB.
	Pools []int
	// Wanted is how many pods can run.
	Wanted int
	// begin does it. It may prepare something first: the time begins when start is called.
	begin func(ctx context.Context, o options, c *measure.Cluster, tl *measure.Timeline, start func()) error
}

var stories = []story{
	{
		Number: 1, Name: "two volumes a pod", Title: "a pod with two volumes of 11Mi", Pools: []int{20, 20, 20}, Wanted: 1,
		Room:  "two nodes have 38Mi in pools of 20, 9 and 9; the last one has 36Mi in pools of 20 and 16",
		begin: fragmented,
	},
	{
		Number: 2, Name: "many pods at once", Title: "6 pods with volumes of 11Mi and 2Mi at once", Pools: []int{20, 20, 20, 20}, Wanted: 6,
		Room:  "a node has four free pools of 20Mi, two others have one each",
		begin: burst,
	},
	{
		Number: 3, Name: "a node is drained", Title: "a node with 6 pods of a StatefulSet is drained", Pools: []int{20, 20}, Room: "one other node is full, the last one has room for 6", Wanted: 6,
		begin: drain,
	},
}

func createPods(ctx context.Context, c *measure.Cluster, n int, sizes ...int) error {
	for i := range n {
		if err := c.CreatePod(ctx, fmt.Sprintf("pod-%d", i), "", sizes...); err != nil {
			return err
		}
	}
	return nil
}

// fragmented has the nodes that look best take one of a pod's volumes only.
func fragmented(ctx context.Context, _ options, c *measure.Cluster, tl *measure.Timeline, start func()) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	others := 0
	for i, sizes := range [][]int{{11, 11}, {11, 11}, {20, 4}} {
		// One after the other: the pool of the second one depends on the first.
		for _, size := range sizes {
			if err := c.CreatePod(ctx, fmt.Sprintf("other-%d", others), nodes[i], size); err != nil {
				return err
			}
			others++
			if err := poll(ctx, patience, func() bool { return tl.Running() == others }); err != nil {
				return fmt.Errorf("the nodes do not fill: %w", err)
			}
		}
	}
	if err := c.WaitForCapacity(ctx, 38, 38, 36); err != nil {
		return err
	}
	tl.Restart()
	start()
	return createPods(ctx, c, 1, 11, 11)
}

// burst creates pods before the driver can report what the first of them have taken.
func burst(ctx context.Context, o options, c *measure.Cluster, tl *measure.Timeline, start func()) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes[1:] {
		if err := errors.Join(c.CreatePod(ctx, "two-"+node, node, 20, 20), c.CreatePod(ctx, "one-"+node, node, 20)); err != nil {
			return err
		}
	}
	if err := poll(ctx, patience, func() bool { return tl.Running() == 2*len(nodes[1:]) }); err != nil {
		return fmt.Errorf("the nodes do not fill: %w", err)
	}
	// Their claims stay, and all nodes have as many pods.
	if err := kubectl(ctx, o, "delete", "pods", "--all", "--now", "--namespace", c.Namespace); err != nil {
		return err
	}
	if err := c.WaitForCapacity(ctx, 80, 20, 20); err != nil {
		return err
	}
	tl.Restart()
	start()
	return createPods(ctx, c, 6, 11, 2)
}

// drain puts a StatefulSet on one node, fills others, and drains that.
func drain(ctx context.Context, o options, c *measure.Cluster, tl *measure.Timeline, start func()) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	if err := kubectl(ctx, o, append([]string{"cordon"}, nodes[1:]...)...); err != nil {
		return err
	}
	if err := c.CreateDatabase(ctx, 6, 5); err != nil {
		return err
	}
	err = poll(ctx, patience, func() bool { return len(c.Tokens(ctx, 6)) == 6 })
	if err := kubectl(ctx, o, append([]string{"uncordon"}, nodes[1:]...)...); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("the StatefulSet does not run: %w", err)
	}
	for i := range 10 {
		if err := c.CreatePod(ctx, fmt.Sprintf("other-%d", i), nodes[1+i/8], 5); err != nil {
			return err
		}
	}
	if err := poll(ctx, patience, func() bool { return tl.Running() == 6+10 }); err != nil {
		return fmt.Errorf("the other nodes do not fill: %w", err)
	}
	tl.Restart()
	start()
	return kubectl(ctx, o, "drain", nodes[0], "--ignore-daemonsets", "--delete-emptydir-data")
}

func kubectl(ctx context.Context, o options, args ...string) error {
	return measure.Kubectl(ctx, o.components, o.kubeconfig, args...)
}
