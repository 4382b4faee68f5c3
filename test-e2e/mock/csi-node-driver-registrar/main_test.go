// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"capacityv2.internal/test-e2e/driver/server"
)

// startDriver serves a driver named d.
func startDriver(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	driver := grpc.NewServer()
	csi.RegisterIdentityServer(driver, &server.Identity{Driver: "d"})
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = driver.Serve(listener) }()
	t.Cleanup(driver.Stop)
	return socket
}

// startRegistrar returns a connection as the kubelet has, and how the registrar ends.
func startRegistrar(t *testing.T, o options) (registerapi.RegistrationClient, chan error) {
	t.Helper()
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() { ended <- run(ctx, o) }()
	c, err := grpc.NewClient("unix://"+filepath.Join(o.registration, "d-reg.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return registerapi.NewRegistrationClient(c), ended
}

func TestRegister(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	o := options{csi: startDriver(t), kubelet: "/var/lib/kubelet/plugins/d/csi.sock", registration: t.TempDir(), http: address, timeout: time.Second}
	kubelet, ended := startRegistrar(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	info, err := kubelet.GetInfo(ctx, &registerapi.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.Name != "d" || info.Endpoint != o.kubelet || info.Type != registerapi.CSIPlugin {
		t.Fatalf("GetInfo: %v, %v", info, err)
	}
	if _, err := kubelet.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %s", response.Status)
	}
	if _, err := kubelet.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{Error: "too old"}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("refused by the kubelet, it ends with %v", err)
	}
}
