// reference-driver is a CSI driver with several pools on each node, which rebuilds
// volumes elsewhere when a node goes away.
//
// It runs on each node (--mode=node), beside external-provisioner with
// --node-deployment, and once in the cluster (--mode=controller).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

type options struct {
	mode, node, root, backing string
	pools                     []pool.Pool
}

func parse(arguments []string) (o options, err error) {
	var pools map[string]string
	flags := pflag.NewFlagSet("reference-driver", pflag.ContinueOnError)
	flags.StringVar(&o.mode, "mode", "node", "node (runs on each node) or controller (runs once, and releases volumes of nodes that go away)")
	flags.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "node: its name; $NODE_NAME if empty")
	flags.StringVar(&o.root, "peers-root", "/var/lib/reference-csi", "node: folder that all nodes share, with the books and pools of each")
	flags.StringToStringVar(&pools, "pools", nil, "node: pools, as NAME=SIZE; the disk of a pool is mounted at PEERS-ROOT/pools/NODE/NAME")
	flags.StringVar(&o.backing, "backing", "images", "node: what volumes are made of: images, files on loop devices, which hold as much as was asked for, or folders, which nothing keeps from growing")
	if err := flags.Parse(arguments); err != nil || o.mode == "controller" {
		return o, err
	}
	switch {
	case o.mode != "node":
		return o, fmt.Errorf("--mode=%s; expected node or controller", o.mode)
	case o.node == "":
		return o, fmt.Errorf("--node is missing, and $NODE_NAME is empty")
	case o.backing != "images" && o.backing != "folders":
		return o, fmt.Errorf("--backing=%s; expected images or folders", o.backing)
	}
	o.pools, err = pool.Parse(pools)
	return o, err
}

func main() {
	logger := klog.Background()
	options, err := parse(os.Args[1:])
	if err == pflag.ErrHelp {
		return
	}
	if err != nil {
		logger.Error(err, "Wrong flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), os.Interrupt, syscall.SIGTERM)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	if err = start(ctx, group, options); err == nil {
		err = group.Wait()
	}
	klog.Flush()
	if err != nil {
		logger.Error(err, "Driver failed")
		os.Exit(1)
	}
}
