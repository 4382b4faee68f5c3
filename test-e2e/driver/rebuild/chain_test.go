package rebuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/server"
	"capacityv2.internal/test-e2e/driver/volume"
)

var mounted = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// TestChain moves a volume from node to node, with the calls that a kubelet makes.
func TestChain(t *testing.T) {
	h := newHarness(t, "n1")
	root := t.TempDir()
	nodes := map[string]*server.Node{}
	for _, name := range []string{"n1", "n2"} {
		store, err := pool.Create(root, name, []pool.Pool{{Name: "p", Size: resource.MustParse("10Gi")}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := volume.New(t.Context(), &volume.Manager{Store: store, Backing: volume.Folders{}, Mounter: mount.NewFakeMounter(nil), Placement: h.requests()})
		if err != nil {
			t.Fatal(err)
		}
		nodes[name] = &server.Node{Volumes: m}
	}
	v, err := nodes["n1"].Volumes.Create(t.Context(), pool.Volume{Name: "pv", CapacityBytes: 1 << 30}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv", types.MergePatchType, []byte(`{"spec":{"csi":{"volumeHandle":"`+v.ID+`"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "pools/n1/p/volumes", v.ID, "file"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	stage := func(node string, code codes.Code, text string) {
		t.Helper()
		_, err := nodes[node].NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: v.ID, StagingTargetPath: filepath.Join(root, "stage"), VolumeCapability: mounted})
		if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("staged on %s: %v; expected %s with %q", node, err, code, text)
		}
	}
	stage("n1", codes.OK, "")
	h.cordon("n1")
	h.expect("unset; home n1=n1")
	stage("n2", codes.Aborted, "sent elsewhere")
	h.send("n2")
	stage("n2", codes.FailedPrecondition, "still staged on node n1") // the pod is being evicted
	h.outOfService("n1")
	stage("n2", codes.OK, "") // no kubelet will unstage it
	h.stays("n2")
	if _, err := nodes["n1"].NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: v.ID, StagingTargetPath: filepath.Join(root, "stage")}); err != nil {
		t.Error(err) // it has come back
	}
	nodes["n1"].Volumes.GiveUp(t.Context())
	data, err := os.ReadFile(filepath.Join(root, "pools/n2/p/volumes", v.ID, "file"))
	if err != nil || string(data) != "data" {
		t.Errorf("after it was rebuilt: %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(root, "pools/n1/p/volumes", v.ID)); !os.IsNotExist(err) {
		t.Errorf("the old copy is still there: %v", err)
	}
	stage("n1", codes.Aborted, "volume "+v.ID+" is on [n2], not on n1")
}

// placed has n2 named with a copy that it has not served yet, and n1 fenced for it. Both are drained.
func placed(h *harness) map[string]*volume.Manager {
	h.Helper()
	nodes := copies(h)
	if _, err := nodes["n1"].Store.Update("v", func(v *pool.Volume) error { v.FencedFor = "n2"; return nil }); err != nil {
		h.Fatal(err)
	}
	h.cordon("n1")
	h.cordon("n2")
	h.expect("unset; home n2=n2")
	return nodes
}

// TestKilledAfterPlace has the volume come back to n1 after n2, which had copied it, was named and killed. Only n1 has it then.
func TestKilledAfterPlace(t *testing.T) {
	h := newHarness(t, "n2")
	nodes := placed(h)
	nodes["n1"].Sweep(t.Context())
	h.uncordon("n1")
	h.stays("unset; home n2=n2")
	if err := nodes["n1"].Acquire(t.Context(), "v", filepath.Join(t.TempDir(), "stage")); err != nil {
		t.Error(err)
	}
	h.stays("n1")
	nodes["n2"].GiveUp(t.Context())
	if v, err := nodes["n2"].Store.Get("v"); err == nil {
		t.Errorf("the copy of n2 is %s", v.State)
	}
}

// TestTakerGone has n2 go, which had copied the volume and was named, before it has served it. n1 has the volume if the Node of
// n2 is gone. While that exists, n2 may come back and take it. It may when it is there anew, too, and then alone.
func TestTakerGone(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*harness)
		want string
	}{
		"cordoned":       {func(*harness) {}, "unset; home n2=n2"},
		"out of service": {func(h *harness) { h.outOfService("n2") }, "unset; home n2=n2"},
		"deleted":        {func(h *harness) { h.remove("n2") }, "unset; home n2=n2,n1=n1"},
		"recreated":      {func(h *harness) { h.recreate("n2") }, "unset; home n2=n2,n1=n1"},
	} {
		for _, sent := range []string{"n1", "n2"} {
			t.Run(name+", sent to "+sent, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, "n2")
				nodes := placed(h)
				test.do(h)
				nodes["n1"].Sweep(t.Context())
				h.stays(test.want)
				h.send(sent)
				if name == "deleted" {
					h.recreateDeleted("n2")
				}
				h.patchNode(sent, `{"spec":{"unschedulable":null,"taints":null}}`)
				nodes["n2"].Sweep(t.Context())
				nodes["n1"].Sweep(t.Context())
				h.ask(volume.Place, sent, codes.OK)
				h.stays(sent)
			})
		}
	}
}
