package server

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// TestSanity runs csi-sanity against a node, with file systems and with devices.
func TestSanity(t *testing.T) {
	for _, kind := range []string{"mount", "block"} {
		p := newPlugin(t, "a=1Gi", "b=1Gi")
		socket := filepath.Join(p.root, "csi.sock")
		serve(p, socket)
		config := sanity.NewTestConfig()
		config.Address = socket
		config.TargetPath, config.StagingPath = p.target, p.staging
		config.TestVolumeSize, config.TestVolumeAccessType = 16*mi, kind
		ginkgo.Describe(kind, func() { sanity.GinkgoTest(&config) })
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	var counts map[types.SpecState]int
	ginkgo.ReportAfterSuite("counts", func(report ginkgo.Report) {
		counts = map[types.SpecState]int{}
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt {
				counts[spec.State]++
			}
		}
	})
	ginkgo.RunSpecs(t, "csi-sanity")
	t.Logf("csi-sanity: %d passed, %d skipped, %d pending, %d failed",
		counts[types.SpecStatePassed], counts[types.SpecStateSkipped], counts[types.SpecStatePending], counts[types.SpecStateFailed])
	if want := 60; counts[types.SpecStatePassed] < want {
		t.Errorf("%d specs passed; expected at least %d: does the driver still say what it can do?", counts[types.SpecStatePassed], want)
	}
}

// serve serves a node on a socket until the test ends.
func serve(p *plugin, socket string) {
	server := NewGRPC(p.Context())
	csi.RegisterIdentityServer(server, &Identity{Driver: Driver})
	csi.RegisterControllerServer(server, p.provisioned)
	csi.RegisterNodeServer(server, p.Node)
	ctx, stop := context.WithCancel(context.WithoutCancel(p.Context()))
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, server, socket) }()
	p.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			p.Error(err)
		}
	})
}
