// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"capacityv2.internal/test-e2e/driver/sanitytest"
)

// TestSanity runs csi-sanity against a node, with file systems and with devices.
func TestSanity(t *testing.T) {
	configs := map[string]sanity.TestConfig{}
	for _, kind := range []string{"mount", "block"} {
		p := newPlugin(t, "a=1Gi", "b=1Gi")
		config := sanity.NewTestConfig()
		config.Address = filepath.Join(p.root, "csi.sock")
		config.TargetPath, config.StagingPath = p.target, p.staging
		config.TestVolumeSize, config.TestVolumeAccessType = 16*mi, kind
		serve(p, config.Address)
		configs[kind] = config
	}
	sanitytest.Run(t, 30, configs)
}

// serve serves a node on a socket until the test ends.
func serve(p *plugin, socket string) {
	server := NewGRPC(p.Context())
	csi.RegisterIdentityServer(server, &Identity{Driver: Driver})
	csi.RegisterControllerServer(server, p.provisioned)
	csi.RegisterNodeServer(server, p.Node)
	ctx, stop := context.WithCancel(context.WithoutCancel(p.Context()))
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, server, socket, func(ctx context.Context) error { <-ctx.Done(); return nil })
	}()
	p.Cleanup(func() {
		second := func(context.Context) error {
			p.Error("a second driver runs")
			return nil
		}
		if err := Serve(ctx, NewGRPC(ctx), socket, second); err == nil || !strings.Contains(err.Error(), "another driver") {
			p.Errorf("a second driver: %v", err)
		}
		stop()
		if err := <-served; err != nil {
			p.Error(err)
		}
	})
}
