package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/server"
	"capacityv2.internal/test-e2e/driver/volume"
)

func runNode(ctx context.Context, group *errgroup.Group, o *options) error {
	store, err := pool.Create(o.root, o.node, o.pools)
	if err != nil {
		return err
	}
	mounter := mount.New("")
	manager := &volume.Manager{Store: store, CreateDelay: o.createDelay}
	switch o.backing {
	case "folders":
		manager.Backing = volume.Folders{Mounter: mounter}
	case "images":
		manager.Backing = volume.Images{Mounter: mount.NewSafeFormatAndMount(mounter, exec.New())}
	default:
		return fmt.Errorf("--backing=%s; expected folders or images", o.backing)
	}
	if o.controller != "" {
		connection, err := grpc.NewClient("unix://"+o.controller, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = connection.Close() })
		manager.Placement = server.NewPlacement(connection)
	}
	if manager, err = volume.New(ctx, manager); err != nil {
		return err
	}
	counted := serveMetrics(ctx, group, o, volume.Metrics{Store: store})
	grpcServer := server.NewGRPC(ctx, counted)
	csi.RegisterIdentityServer(grpcServer, &server.Identity{Driver: o.driver, Version: version})
	csi.RegisterControllerServer(grpcServer, &server.Controller{Volumes: manager, ReportPools: o.reportPools})
	csi.RegisterNodeServer(grpcServer, &server.Node{Volumes: manager, Mounter: mounter})
	if err := os.MkdirAll(filepath.Dir(o.socket), 0o750); err != nil {
		return err
	}
	group.Go(func() error { return server.Serve(ctx, grpcServer, o.socket) })
	group.Go(func() error { wait.UntilWithContext(ctx, manager.Sweep, 10*time.Second); return nil })
	if o.registration == "" {
		return nil
	}
	failed := make(chan string, 1)
	registration := grpc.NewServer()
	registerapi.RegisterRegistrationServer(registration, &server.Registration{
		Driver: o.driver, Endpoint: o.socket, Failed: func(reason string) { failed <- reason },
	})
	group.Go(func() error {
		return server.Serve(ctx, registration, filepath.Join(o.registration, o.driver+"-reg.sock"))
	})
	group.Go(func() error {
		select {
		case reason := <-failed:
			return errors.New("the kubelet does not take the driver: " + reason)
		case <-ctx.Done():
			return nil
		}
	})
	return nil
}

func runController(ctx context.Context, group *errgroup.Group, o *options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	// A drain changes many volumes at once.
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	controller, err := rebuild.New(client, o.driver, server.TopologyKey)
	if err != nil {
		return err
	}
	counted := serveMetrics(ctx, group, o, rebuild.Placements)
	wait, err := controller.Start(ctx)
	if err != nil {
		return err
	}
	group.Go(func() error { wait(); return nil })
	grpcServer := server.NewGRPC(ctx, counted)
	csi.RegisterControllerServer(grpcServer, controller)
	group.Go(func() error { return server.Serve(ctx, grpcServer, o.controller) })
	return nil
}

func serveMetrics(ctx context.Context, group *errgroup.Group, o *options, own prometheus.Collector) metrics.CSIMetricsManager {
	registry := prometheus.NewRegistry()
	registry.MustRegister(own)
	manager := metrics.NewCSIMetricsManagerForPlugin(o.driver).WithAdditionalRegistry(registry)
	if o.metrics != "" {
		group.Go(func() error { return server.ServeMetrics(ctx, manager, o.metrics) })
	}
	return manager
}
