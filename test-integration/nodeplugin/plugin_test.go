package nodeplugin

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// TestPlugin does what a kubelet does.
func TestPlugin(t *testing.T) {
	cluster := t.TempDir()
	has := func(volume, node string) bool { return volume == "here" && node == "node1" }
	dir := filepath.Join(cluster, "node1", "kubelet")
	if _, err := StartAll("d", cluster, has, "node1"); err == nil {
		t.Error("no error without a kubelet")
	}
	if err := os.MkdirAll(filepath.Join(dir, registry), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, registry, "d.sock"), nil, 0o600); err != nil {
		t.Fatal(err) // as after one that was killed
	}
	stop, err := StartAll("d", cluster, has, "node1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := StartAll("d", cluster, has, "node1"); err == nil {
		t.Error("no error beside another one")
	}
	socket := filepath.Join(dir, registry, "d.sock")
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()

	info, err := registerapi.NewRegistrationClient(connection).GetInfo(t.Context(), &registerapi.InfoRequest{})
	if err != nil || info.Name != "d" || info.Endpoint != "/var/lib/kubelet/plugins_registry/d.sock" {
		t.Errorf("info %v, %v", info, err)
	}
	kubelet := csi.NewNodeClient(connection)
	if node, err := kubelet.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}); err != nil || node.NodeId != "node1" || node.AccessibleTopology.GetSegments()["kubernetes.io/hostname"] != "node1" {
		t.Errorf("node %v, %v", node, err)
	}
	const target = "/var/lib/kubelet/pods/uid/volumes/kubernetes.io~csi/pv/mount"
	here := filepath.Join(dir, "pods/uid/volumes/kubernetes.io~csi/pv/mount")
	if _, err := kubelet.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "elsewhere", TargetPath: target}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("volume elsewhere: got error %v", err)
	}
	if _, err := os.Stat(here); !os.IsNotExist(err) {
		t.Errorf("there is a folder for a volume elsewhere: %v", err)
	}
	for range 2 { // calls may be repeated
		if _, err := kubelet.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "here", TargetPath: target}); err != nil {
			t.Error(err)
		}
		if fi, err := os.Stat(here); err != nil || !fi.IsDir() {
			t.Errorf("no folder: %v", err)
		}
	}
	for range 2 {
		if _, err := kubelet.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{TargetPath: target}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(here); !os.IsNotExist(err) {
			t.Errorf("the folder is still there: %v", err)
		}
	}
	for _, path := range []string{"/etc", "/var/lib/kubelet/pods/../../../../etc"} {
		if _, err := kubelet.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{TargetPath: path}); err == nil {
			t.Errorf("removed %s", path)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("the socket still serves")
	}
}
