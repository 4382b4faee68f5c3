// SPDX-License-Identifier: Apache-2.0

// csi-node-driver-registrar stands in for the sidecar of that name in the pods of
// upstream's mock driver, and has the flags that they use: it asks the driver for its
// name, registers it with the kubelet, and serves /healthz.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"capacityv2.internal/test-e2e/driver/server"
)

type options struct {
	csi, kubelet, registration, http string
	timeout                          time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{}
	klog.InitFlags(nil)
	flag.StringVar(&o.csi, "csi-address", "/run/csi/socket", "socket of the driver")
	flag.StringVar(&o.kubelet, "kubelet-registration-path", "", "path of that socket on the host, for the kubelet")
	flag.StringVar(&o.registration, "plugin-registration-path", "/registration", "where the kubelet looks for plugins")
	flag.StringVar(&o.http, "http-endpoint", "", "address of /healthz, such as :9809; not served if empty")
	flag.DurationVar(&o.timeout, "timeout", time.Second, "how long a call of the driver may take")
	flag.Parse()
	if err := run(ctx, o); err != nil {
		klog.ErrorS(err, "Registrar failed")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// run registers the driver until the context ends.
func run(ctx context.Context, o options) error {
	if o.kubelet == "" {
		return errors.New("--kubelet-registration-path is missing; expected the path of the driver's socket on the host")
	}
	name, err := driverName(ctx, o)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	socket := filepath.Join(o.registration, name+"-reg.sock")
	failed := make(chan string, 1)
	registrar := grpc.NewServer()
	registerapi.RegisterRegistrationServer(registrar, &registration{driver: name, endpoint: o.kubelet, failed: failed})
	group.Go(func() error { return server.Serve(ctx, registrar, socket, nil) })
	if o.http != "" {
		health := &http.Server{Addr: o.http, Handler: healthz(socket), ReadHeaderTimeout: 10 * time.Second}
		defer context.AfterFunc(ctx, func() { _ = health.Close() })()
		group.Go(func() error {
			if err := health.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		select {
		case reason := <-failed:
			return fmt.Errorf("the kubelet does not take %s: %s", name, reason)
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// registration is the service that a kubelet asks about a driver: it watches a folder for sockets of such services.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	driver, endpoint string
	// failed gets the reason when the kubelet does not take the driver.
	failed chan<- string
}

// GetInfo returns what is to be registered.
func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: r.driver, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus is told how it went.
func (r *registration) NotifyRegistrationStatus(ctx context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if s.PluginRegistered {
		klog.FromContext(ctx).Info("Registered with the kubelet", "driver", r.driver)
	} else {
		select {
		case r.failed <- s.Error:
		default: // It ends already.
		}
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// driverName asks the driver, which may start later than we do.
func driverName(ctx context.Context, o options) (string, error) {
	c, err := connection.Connect(ctx, o.csi, metrics.NewCSIMetricsManager(""), connection.WithTimeout(o.timeout))
	if err != nil {
		return "", err
	}
	defer c.Close()
	for {
		call, cancel := context.WithTimeout(ctx, o.timeout)
		name, err := rpc.GetDriverName(call, c)
		cancel()
		if err == nil {
			return name, nil
		}
		klog.ErrorS(err, "The driver does not answer")
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// healthz is healthy while the kubelet can find the registration.
func healthz(socket string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(socket); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}
