package rebuild

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/server"
	"capacityv2.internal/test-e2e/driver/volume"
)

// restored are nodes whose books are older than the PersistentVolume, which names n2: by the books, n1 has the data.
type restored struct {
	*harness
	nodes map[string]*volume.Manager
}

func newRestored(t *testing.T, n2 func(*pool.Volume)) *restored {
	h := newHarness(t, "n2")
	r := &restored{h, copies(h)}
	h.send("n2")
	for node, m := range r.nodes {
		v, err := m.Store.Get("v")
		if err := errors.Join(err, os.WriteFile(filepath.Join(v.Path, "file"), []byte(node), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if n2 == nil {
		if err := os.Remove(filepath.Join(r.root(), "books/n2/v.json")); err != nil {
			t.Fatal(err)
		}
		return r
	}
	_, err1 := r.nodes["n1"].Store.Update("v", func(v *pool.Volume) error { v.Generation = 2; return nil })
	_, err2 := r.nodes["n2"].Store.Update("v", func(v *pool.Volume) error { n2(v); return nil })
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return r
}

// root is the folder with the books and pools of the nodes.
func (r *restored) root() string {
	v, err := r.nodes["n1"].Store.Get("v")
	if err != nil {
		r.Fatal(err)
	}
	return filepath.Join(v.Path, "../../../../..")
}

// TestRestoredBooksPublish asks for a mount of a volume that is in no books any more. An earlier call may have made it.
func TestRestoredBooksPublish(t *testing.T) {
	r := newRestored(t, nil)
	_, err := (&server.Node{Volumes: r.nodes["n2"]}).NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: "v", StagingTargetPath: filepath.Join(r.root(), "stage"), TargetPath: filepath.Join(r.root(), "pod"), VolumeCapability: mounted})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("published: %v; expected %s", err, codes.Unavailable)
	}
}

// refuses has a node answer with a code that is not final, and leave the data as it is.
func (r *restored) refuses(node string, codes ...codes.Code) {
	r.Helper()
	err := r.nodes[node].Acquire(r.Context(), "v", filepath.Join(r.TempDir(), "stage"))
	if got := status.Code(err); got != codes[0] && got != codes[len(codes)-1] {
		r.Errorf("asked for on %s: %v; expected %v", node, err, codes)
	}
	for _, m := range r.nodes {
		m.Sweep(r.Context())
	}
	for _, node := range []string{"n1", "n2"} {
		if data, err := os.ReadFile(filepath.Join(r.root(), "pools", node, "p/volumes/v/file")); err != nil || string(data) != node {
			r.Errorf("data of %s: %q, %v", node, data, err)
		}
	}
}

// TestRestoredBooks has books from before a move. The copy that they call current is neither served nor copied nor shown.
func TestRestoredBooks(t *testing.T) {
	for name, n2 := range map[string]func(*pool.Volume){
		"before the copy":             nil,
		"from when the copy was half": func(*pool.Volume) {},
		"from the time on n2 before": func(v *pool.Volume) {
			v.State, v.FencedFor, v.Served = pool.Ready, "n1", true
		},
	} {
		for where, test := range map[string]struct {
			do   func(*harness)
			want string
		}{
			"named":                  {func(*harness) {}, "n2"},
			"home":                   {func(h *harness) { h.cordon("n2"); h.expect("unset; home n2=n2") }, "unset; home n2=n2"},
			"where no Node is":       {func(h *harness) { h.remove("n2"); h.expect("unset; home") }, "unset; home"},
			"where the Node is anew": {func(h *harness) { h.remove("n2"); h.expect("unset; home"); h.recreateDeleted("n2") }, "unset; home"},
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				r := newRestored(t, n2)
				test.do(r.harness)
				r.refuses("n2", codes.Unavailable)
				r.refuses("n1", codes.Unavailable, codes.Aborted)
				if r.state() != test.want {
					t.Fatalf("PersistentVolume: %q; expected %q", r.state(), test.want)
				}
				if where != "named" {
					r.send("n1")
					r.refuses("n1", codes.Unavailable)
					r.expect(test.want)
				}
			})
		}
	}
}

// TestRestoredBooksOfOne has a volume that two nodes are named for, and books of one that do not know that its copy was fenced.
// It asks the other one.
func TestRestoredBooksOfOne(t *testing.T) {
	r := newRestored(t, func(v *pool.Volume) { v.State = pool.Ready })
	r.patchPV(`{"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` + key + `","operator":"In","values":["n1","n2"]}]}]}}}}`)
	if err := r.nodes["n2"].Acquire(t.Context(), "v", filepath.Join(t.TempDir(), "stage")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(r.root(), "pools/n2/p/volumes/v/file")); err != nil || string(data) != "n1" {
		t.Errorf("served: %q, %v", data, err)
	}
}

// TestRestoredBooksAlone has an API server that does not answer. Whether the books are old, nobody can say then.
func TestRestoredBooksAlone(t *testing.T) {
	r := newRestored(t, nil)
	r.client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable(corev1.GroupName)
	})
	r.refuses("n1", codes.Unavailable)
}
