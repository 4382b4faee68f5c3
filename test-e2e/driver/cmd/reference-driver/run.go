package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/server"
	"capacityv2.internal/test-e2e/driver/volume"
)

const (
	// socket is where the kubelet finds the CSI services, and registrationSocket where it
	// looks for drivers.
	socket             = "/var/lib/kubelet/plugins/" + server.Driver + "/csi.sock"
	registrationSocket = "/var/lib/kubelet/plugins_registry/" + server.Driver + "-reg.sock"
)

// Both are for tests that check what the driver did: record.go.
var (
	recordRoom   func(event, node string, v pool.Volume)
	interceptors []grpc.UnaryServerInterceptor
)

// start starts what a mode needs, which ends with the context.
func start(ctx context.Context, group *errgroup.Group, o options) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100 // A drain changes many volumes at once.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if o.mode == "controller" {
		controller := rebuild.New(client, server.Driver, server.TopologyKey)
		group.Go(func() error { return controller.Run(ctx) })
		return nil
	}
	return startNode(ctx, group, o, rebuild.NewRequests(client, server.Driver, server.TopologyKey))
}

func startNode(ctx context.Context, group *errgroup.Group, o options, placement volume.Placement) error {
	var backing volume.Backing = volume.Images{Exec: exec.New()}
	if o.backing == "folders" {
		klog.FromContext(ctx).Info("Volumes are folders: nothing keeps a pod from writing more than its volume has, or from filling the disk")
		backing = volume.Folders{}
	}
	store, err := pool.Create(o.root, o.node, o.pools)
	if err != nil {
		return err
	}
	if err := store.Own(); err != nil {
		return err
	}
	store.Record = recordRoom
	if err := store.RecordAll(); err != nil {
		return err
	}
	manager, err := volume.New(ctx, &volume.Manager{Store: store, Backing: backing, Mounter: mount.New(""), Placement: placement})
	if err != nil {
		return err
	}
	grpcServer := server.NewGRPC(ctx, interceptors...)
	csi.RegisterIdentityServer(grpcServer, &server.Identity{Driver: server.Driver})
	csi.RegisterControllerServer(grpcServer, &server.Controller{Volumes: manager})
	csi.RegisterNodeServer(grpcServer, &server.Node{Volumes: manager})
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	group.Go(func() error { return server.Serve(ctx, grpcServer, socket) })
	group.Go(func() error { wait.UntilWithContext(ctx, manager.Sweep, 10*time.Second); return nil })
	group.Go(func() error { wait.UntilWithContext(ctx, manager.GiveUp, time.Second); return nil })
	registration := grpc.NewServer()
	registerapi.RegisterRegistrationServer(registration, &server.Registration{
		Driver: server.Driver, Endpoint: socket, Failed: func(reason string) {
			group.Go(func() error { return errors.New("the kubelet does not take the driver: " + reason) })
		},
	})
	group.Go(func() error { return server.Serve(ctx, registration, registrationSocket) })
	return nil
}
