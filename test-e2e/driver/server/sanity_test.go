package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/volume"
)

// TestSanity runs csi-sanity against a node with each backing, with real mounts, all of
// them below a temporary folder.
func TestSanity(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	// Not t.TempDir, whose path is too long for a socket.
	root, err := os.MkdirTemp("", "sanity")
	if err != nil {
		t.Fatal(err)
	}
	mounter := mount.New("")
	t.Cleanup(func() { removeAll(t, mounter, root) })

	for name, backing := range map[string]volume.Backing{
		"folders": volume.Folders{Mounter: mounter},
		"images":  volume.Images{Mounter: mount.NewSafeFormatAndMount(mounter, exec.New())},
	} {
		dir := filepath.Join(root, name)
		manager := newManager(t, dir, "node1", backing, 100, 50)
		socket := filepath.Join(dir, "csi.sock")
		serve(t, manager, mounter, socket)

		config := sanity.NewTestConfig()
		config.Address = socket
		config.TargetPath, config.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
		config.TestVolumeSize, config.TestVolumeExpandSize = 64<<20, 128<<20
		ginkgo.Describe(name, func() { sanity.GinkgoTest(&config) })
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
	if counts[types.SpecStatePassed] < 70 {
		t.Errorf("%d specs passed; expected at least 70: does the driver still say what it can do?", counts[types.SpecStatePassed])
	}
}

// serve serves a node on a socket until the test ends.
func serve(t *testing.T, manager *volume.Manager, mounter mount.Interface, socket string) {
	server := NewGRPC(t.Context(), metrics.NewCSIMetricsManagerForPlugin("reference.csi.capacityv2.internal"))
	csi.RegisterIdentityServer(server, &Identity{Driver: "reference.csi.capacityv2.internal", Version: "test"})
	csi.RegisterControllerServer(server, &Controller{Volumes: manager, ReportPools: true})
	csi.RegisterNodeServer(server, &Node{Volumes: manager, Mounter: mounter})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, server, socket) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// removeAll removes a folder, after it has unmounted what a test has left there.
func removeAll(t *testing.T, mounter mount.Interface, root string) {
	points, err := mounter.List()
	if err != nil {
		t.Error(err)
	}
	for _, p := range points {
		if strings.HasPrefix(p.Path, root+"/") {
			t.Errorf("%s is still mounted", p.Path)
			if err := mounter.Unmount(p.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.RemoveAll(root); err != nil {
		t.Error(err)
	}
}
