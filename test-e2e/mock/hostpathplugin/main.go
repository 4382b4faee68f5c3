// SPDX-License-Identifier: Apache-2.0

// hostpathplugin stands in for the program of csi-driver-host-path in the pods of
// upstream's mock driver (test/e2e/testing-manifests/storage-csi/mock), and has the flags
// that they use. With --proxy-endpoint it connects its socket with the mock driver that
// is part of the test program. Without, it is that mock driver itself, which makes
// folders, and no volumes.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/driver"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], flag.CommandLine); err != nil {
		klog.ErrorS(err, "Plugin failed")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}

// run does what the arguments say until the context ends.
func run(ctx context.Context, arguments []string, flags *flag.FlagSet) error {
	klog.InitFlags(flags)
	config := service.Config{PermissiveTargetPath: true}
	socket := flags.String("endpoint", "/csi/csi.sock", "path of the CSI socket")
	proxied := flags.String("proxy-endpoint", "", "address for connections of the driver, such as tcp://:9000, which then serves the socket")
	attach := flags.Bool("enable-attach", false, "volumes are attached")
	flags.StringVar(&config.DriverName, "drivername", service.Name, "name of the driver")
	flags.BoolVar(&config.EnableTopology, "enable-topology", false, "volumes are only where the driver runs")
	flags.Int64Var(&config.AttachLimit, "attach-limit", 0, "how many volumes can be attached; 0 is no limit")
	flags.BoolVar(&config.NodeExpansionRequired, "node-expand-required", false, "the node takes part in expanding volumes")
	flags.String("nodeid", "", "ignored: the mock driver uses its own name")
	flags.String("statedir", "", "ignored: nothing is stored")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config.DisableAttach = !*attach
	// What an earlier container of the pod has left.
	if err := os.Remove(*socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		return err
	}
	if *proxied != "" {
		return listenAndPair(ctx, listener, *proxied)
	}
	s := service.New(config)
	d := driver.NewCSIDriver(&driver.CSIDriverServers{Controller: s, Identity: s, Node: s})
	if err := d.Start(listener, nil); err != nil {
		return err
	}
	klog.InfoS("Mock driver serves", "name", config.DriverName, "socket", *socket)
	<-ctx.Done()
	d.Stop()
	return nil
}
