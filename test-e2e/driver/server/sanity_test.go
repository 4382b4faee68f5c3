package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/volume"
)

// TestSanity runs csi-sanity against a node with each backing, and with devices, with real
// mounts, all of them below a temporary folder.
func TestSanity(t *testing.T) {
	suites := backings(t)
	if images, ok := suites["images"]; ok {
		suites["devices"] = images
	}
	// Not t.TempDir, whose path is too long for a socket.
	root, err := os.MkdirTemp("", "sanity")
	if err != nil {
		t.Fatal(err)
	}
	mounter := mount.New("")
	t.Cleanup(func() {
		unmountAll(t, mounter, root)
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})

	for name, backing := range suites {
		dir := filepath.Join(root, name)
		socket := filepath.Join(dir, "csi.sock")
		manager := newManager(t, dir, "node1", backing, mounter, 100, 50)
		serve(t, manager, socket)

		config := sanity.NewTestConfig()
		config.Address = socket
		config.TargetPath, config.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
		config.TestVolumeSize = 16 << 20
		if name == "devices" {
			config.TestVolumeAccessType = "block"
		}
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
	if want := 30 * len(suites); counts[types.SpecStatePassed] < want {
		t.Errorf("%d specs passed; expected at least %d: does the driver still say what it can do?", counts[types.SpecStatePassed], want)
	}
}

// serve serves a node on a socket until the test ends.
func serve(t *testing.T, manager *volume.Manager, socket string) {
	server := NewGRPC(t.Context())
	csi.RegisterIdentityServer(server, &Identity{Driver: Driver})
	csi.RegisterControllerServer(server, &Controller{Volumes: manager})
	csi.RegisterNodeServer(server, &Node{Volumes: manager})
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

// unmountAll unmounts what a test has left in a folder, and looks for loop devices.
func unmountAll(t *testing.T, mounter mount.Interface, root string) {
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
	out, err := exec.New().Command("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").CombinedOutput()
	if err != nil {
		t.Errorf("losetup: %v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], root+"/") {
			t.Errorf("%s is still attached", line)
			if out, err := exec.New().Command("losetup", "--detach", fields[0]).CombinedOutput(); err != nil {
				t.Errorf("losetup: %v: %s", err, out)
			}
		}
	}
}
