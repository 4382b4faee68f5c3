// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// start runs the program until the test ends, and returns its socket.
func start(t *testing.T, arguments ...string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, append(arguments, "-endpoint="+socket), flag.NewFlagSet("hostpathplugin", flag.ContinueOnError))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial(network, address)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(deadline)
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestProxy(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	socket := start(t, "-proxy-endpoint=tcp://"+address, "-nodeid=n", "-v=5")

	// The driver's side connects in advance, as the test program does.
	drivers := []net.Conn{dial(t, "tcp", address), dial(t, "tcp", address)}
	for i, driver := range drivers {
		client := dial(t, "unix", socket)
		fmt.Fprintf(client, "question %d\n", i)
		if got, err := bufio.NewReader(driver).ReadString('\n'); err != nil || got != fmt.Sprintf("question %d\n", i) {
			t.Fatalf("driver %d got %q, %v", i, got, err)
		}
		fmt.Fprintf(driver, "answer %d\n", i)
		if got, err := bufio.NewReader(client).ReadString('\n'); err != nil || got != fmt.Sprintf("answer %d\n", i) {
			t.Fatalf("client %d got %q, %v", i, got, err)
		}
		client.Close()
		if _, err := driver.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("driver %d after its client has ended: %v, want the end", i, err)
		}
	}
}

func TestMockDriver(t *testing.T) {
	socket := start(t, "--drivername=d", "--enable-topology", "--statedir=/tmp", "--nodeid=n")
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.Name != "d" {
		t.Errorf("plugin %v, %v, want d", info, err)
	}
	node, err := csi.NewNodeClient(connection).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil || len(node.AccessibleTopology.GetSegments()) != 1 {
		t.Errorf("node %v, %v, want a topology", node, err)
	}
}
