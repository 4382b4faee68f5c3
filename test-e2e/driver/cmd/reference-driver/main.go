// reference-driver is a CSI driver with several pools on each node, which rebuilds
// volumes elsewhere when a node goes away.
//
// It runs on each node (--mode=node), beside external-provisioner with
// --node-deployment, and once in the cluster (--mode=controller).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"k8s.io/klog/v2"
)

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
	if options.mode == "controller" {
		err = runController(ctx, group, options)
	} else {
		err = runNode(ctx, group, options)
	}
	if err == nil {
		err = group.Wait()
	}
	klog.Flush()
	if err != nil {
		logger.Error(err, "Driver failed")
		os.Exit(1)
	}
}
