// SPDX-License-Identifier: Apache-2.0

// reference-driver is a CSI driver with several pools on each node, which rebuilds
// volumes elsewhere when a node goes away.
//
// It runs on each node (--mode=node), beside external-provisioner with
// --node-deployment and node-driver-registrar, and once in the cluster (--mode=controller).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/spf13/pflag"
	"golang.org/x/sync/semaphore"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/server"
	"capacityv2.internal/test-e2e/driver/store"
	"capacityv2.internal/test-e2e/driver/volume"
)

// parallelCopies is how many copies a node makes at the same time.
const parallelCopies = 2

type options struct {
	mode, socket string
	node         volume.Node
}

func parse(arguments []string, o *options) error {
	var own string
	var sizes map[string]string
	flags := pflag.NewFlagSet("reference-driver", pflag.ContinueOnError)
	flags.StringVar(&o.mode, "mode", "node", "node (runs on each node) or controller (runs once, and says where volumes are)")
	flags.StringVar(&o.socket, "csi-address", "/csi/csi.sock", "node: socket of the CSI services")
	flags.StringVar(&o.node.Name, "node", os.Getenv("NODE_NAME"), "node: its name; $NODE_NAME if empty")
	flags.StringVar(&own, "own", "/var/lib/reference-csi/own", "node: its own folder; the disk of a pool is mounted at pools/NAME in it")
	flags.StringVar(&o.node.Peers, "nodes", "/var/lib/reference-csi/nodes", "node: the folders of all nodes, by name, which it only reads")
	flags.DurationVar(&o.node.KeepOld, "keep-old", time.Hour, "node: how long to keep a copy after the volume was served elsewhere, at least 3m")
	flags.StringToStringVar(&sizes, "pools", nil, "node: pools, as NAME=SIZE")
	if err := flags.Parse(arguments); err != nil || o.mode == "controller" {
		return err
	}
	switch {
	case o.mode != "node":
		return fmt.Errorf("--mode=%s; expected node or controller", o.mode)
	case o.node.Name == "":
		return fmt.Errorf("--node is missing, and $NODE_NAME is empty")
	case o.node.KeepOld < 0:
		return fmt.Errorf("--keep-old=%s; expected no negative duration", o.node.KeepOld)
	}
	pools, err := store.ParsePools(sizes)
	o.node.Store = store.New(own, o.node.Name, pools)
	return err
}

func main() {
	logger := klog.Background()
	o := &options{}
	err := parse(os.Args[1:], o)
	if err == pflag.ErrHelp {
		return
	}
	if err != nil {
		logger.Error(err, "Wrong flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = run(ctx, o)
	klog.Flush()
	if err != nil {
		logger.Error(err, "Driver failed")
		os.Exit(1)
	}
}

// run runs what a mode needs until the context ends.
func run(ctx context.Context, o *options) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100 // A drain changes many volumes at once.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	api := rebuild.API{Names: rebuild.Names{Driver: server.Driver, TopologyKey: server.TopologyKey}, Client: client}
	if o.mode == "controller" {
		return rebuild.NewController(api).Run(ctx)
	}
	node := &o.node
	node.API, node.Mounter, node.Exec, node.Slots = api, mount.New(""), exec.New(), semaphore.NewWeighted(parallelCopies)
	grpcServer := server.NewGRPC(ctx)
	csi.RegisterIdentityServer(grpcServer, &server.Identity{Driver: server.Driver})
	csi.RegisterControllerServer(grpcServer, &server.Controller{Volumes: node})
	csi.RegisterNodeServer(grpcServer, &server.Node{Volumes: node})
	return server.Serve(ctx, grpcServer, o.socket, node.Run)
}
