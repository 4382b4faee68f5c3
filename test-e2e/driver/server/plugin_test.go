// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/apitest"
	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
	"capacityv2.internal/test-e2e/driver/volume"
)

const mi = 1 << 20

// provisioned is the controller service with what external-provisioner and the scheduler do: a PersistentVolume and a claim
// for each volume.
type provisioned struct {
	*Controller
	server *apitest.Server
}

func (p provisioned) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	response, err := p.Controller.CreateVolume(ctx, r)
	if err != nil {
		return nil, err
	}
	v := response.Volume
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: r.Name, ResourceVersion: "1"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(v.CapacityBytes, resource.BinarySI)},
		ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: r.Name, UID: "uid"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: Driver, VolumeHandle: v.VolumeId, VolumeAttributes: v.VolumeContext}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{v.AccessibleTopology[0].Segments[TopologyKey]}}},
		}}}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: r.Name, Namespace: "default", UID: "uid", Annotations: map[string]string{storagehelpers.AnnSelectedNode: p.Volumes.Name},
	}}
	_, _ = p.server.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	_, _ = p.server.CoreV1().PersistentVolumeClaims("default").Create(ctx, claim, metav1.CreateOptions{})
	return response, nil
}

func (p provisioned) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	response, err := p.Controller.DeleteVolume(ctx, r)
	if name, _, _ := strings.Cut(r.VolumeId, "@"); err == nil {
		_ = p.server.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
	}
	return response, err
}

// plugin is the driver of node1, with real mounts.
type plugin struct {
	*testing.T
	provisioned
	*Node
	node            *volume.Node
	root            string
	staging, target string
}

// newPlugin returns one whose pools have sizes in Mi. Its folders are not below t.TempDir, whose path is too long for a
// socket.
func newPlugin(t *testing.T, pools ...string) *plugin {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("this machine has no loop devices: %v", err)
	}
	root, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]string{}
	for _, p := range pools {
		name, size, _ := strings.Cut(p, "=")
		sizes[name] = size
	}
	parsed, err := store.ParsePools(sizes)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(root, "node1"), 0o700), os.WriteFile(filepath.Join(root, "node1", "owner"), []byte("node1"), 0o600)); err != nil {
		t.Fatal(err)
	}
	server := apitest.New(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", UID: "uid"}})
	n := &volume.Node{
		Name: "node1", Store: store.New(filepath.Join(root, "node1"), "node1", parsed), Peers: root, KeepOld: time.Hour, Mounter: mount.New(""), Exec: exec.New(),
		API: rebuild.API{Names: rebuild.Names{Driver: Driver, TopologyKey: TopologyKey}, Client: server},
	}
	p := &plugin{T: t, provisioned: provisioned{&Controller{Volumes: n}, server}, Node: &Node{Volumes: n}, node: n, root: root,
		staging: filepath.Join(root, "staging"), target: filepath.Join(root, "target")}
	t.Cleanup(p.end)
	return p
}

// end looks for what the test has left.
func (p *plugin) end() {
	mounter := mount.New("")
	points, err := mounter.List()
	if err != nil {
		p.Error(err)
	}
	for _, point := range points {
		if strings.HasPrefix(point.Path, p.root+"/") && !strings.HasPrefix(point.Path, p.root+"/node1/pools/") {
			p.Errorf("%s is still mounted", point.Path)
			if err := mounter.Unmount(point.Path); err != nil {
				p.Fatal(err)
			}
		}
	}
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range files {
		if path, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(path), p.root+"/node1/pools") {
			p.Errorf("%s is still attached", path)
		}
	}
	if err := os.RemoveAll(p.root); err != nil {
		p.Error(err)
	}
}

func capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

var (
	writer = []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)}
	device = []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}, AccessMode: writer[0].AccessMode}}
)

func (p *plugin) create(name string, capability *csi.VolumeCapability, bytes int64) (id string, err error) {
	r, err := p.CreateVolume(p.Context(), &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{capability}, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}})
	return r.GetVolume().GetVolumeId(), err
}

// publish does what a kubelet does for a pod, twice.
func (p *plugin) publish(id string, capability *csi.VolumeCapability) {
	p.Helper()
	publish := &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, TargetPath: p.target, VolumeCapability: capability}
	if _, err := p.NodePublishVolume(p.Context(), publish); status.Code(err) != codes.FailedPrecondition {
		p.Errorf("published before it was staged: %v", err)
	}
	for range 2 {
		if _, err := p.NodeStageVolume(p.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: p.staging, VolumeCapability: capability}); err != nil {
			p.Fatal(err)
		}
		if _, err := p.NodePublishVolume(p.Context(), publish); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *plugin) unpublish(id string) {
	p.Helper()
	for range 2 {
		if _, err := p.NodeUnpublishVolume(p.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: p.target}); err != nil {
			p.Fatal(err)
		}
		if _, err := p.NodeUnstageVolume(p.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: p.staging}); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *plugin) remove(id string) {
	p.Helper()
	if _, err := p.DeleteVolume(p.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		p.Error(err)
	}
}
