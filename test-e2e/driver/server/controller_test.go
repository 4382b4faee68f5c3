package server

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/volume"
)

const gi = 1 << 30

// newManager returns one whose pools pool0, pool1, ... have sizes in Gi.
func newManager(t *testing.T, root, node string, backing volume.Backing, mounter mount.Interface, sizes ...int64) *volume.Manager {
	t.Helper()
	var pools []pool.Pool
	for i, size := range sizes {
		pools = append(pools, pool.Pool{Name: fmt.Sprintf("pool%d", i), Size: *resource.NewQuantity(size*gi, resource.BinarySI)})
	}
	store, err := pool.Create(root, node, pools)
	if err != nil {
		t.Fatal(err)
	}
	m, err := volume.New(t.Context(), &volume.Manager{Store: store, Backing: backing, Mounter: mounter, Placement: agrees{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// agrees is an API server that lets a node do whatever it asks for.
type agrees struct{ volume.Placement }

func (agrees) Ask(context.Context, volume.Question, pool.Volume, string, ...string) error { return nil }

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

func TestGetCapacity(t *testing.T) {
	m := newManager(t, t.TempDir(), "node1", volume.Folders{}, nil, 100, 50, 10)
	if _, err := m.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: 5 * gi, Pools: []string{"pool2"}}, 0); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		request  *csi.GetCapacityRequest
		sum, max int64
		list     []int64
	}{
		"all pools":       {request: &csi.GetCapacityRequest{}, sum: 155, max: 100, list: []int64{100, 50, 5}},
		"pools of class":  {request: &csi.GetCapacityRequest{Parameters: map[string]string{"pools": "pool2, pool1"}}, sum: 55, max: 50, list: []int64{50, 5}},
		"unknown pool":    {request: &csi.GetCapacityRequest{Parameters: map[string]string{"pools": "pool7"}}, list: []int64{0}},
		"this node":       {request: &csi.GetCapacityRequest{AccessibleTopology: segment("node1")}, sum: 155, max: 100, list: []int64{100, 50, 5}},
		"another node":    {request: &csi.GetCapacityRequest{AccessibleTopology: segment("node2")}, list: []int64{0}},
		"other topology":  {request: &csi.GetCapacityRequest{AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "node1"}}}, list: []int64{0}},
		"several writers": {request: &csi.GetCapacityRequest{VolumeCapabilities: []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)}}, list: []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Controller{Volumes: m}).GetCapacity(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			for i := range test.list {
				test.list[i] *= gi
			}
			if got.AvailableCapacity != test.sum*gi || got.MaximumVolumeSize.GetValue() != test.max*gi || !reflect.DeepEqual(got.AvailableCapacities, test.list) {
				t.Errorf("got %v; expected %d, at most %d, %d", got, test.sum*gi, test.max*gi, test.list)
			}
		})
	}
	if _, err := (&Controller{Volumes: m}).GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"pool": "pool2"}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("misspelt parameter: %v", err)
	}
}

func TestCreateVolume(t *testing.T) {
	root := t.TempDir()
	newManager(t, root, "node2", volume.Folders{}, nil, 10)
	c := &Controller{Volumes: newManager(t, root, "node1", volume.Folders{}, nil, 10, 20)}
	for _, test := range []struct {
		name    string
		request *csi.CreateVolumeRequest
		code    codes.Code
		bytes   int64
	}{
		{"a", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 5 * gi}}, codes.OK, 5 * gi},
		{"no size", &csi.CreateVolumeRequest{}, codes.OK, 1 << 20},
		{"tiny", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 1}}, codes.OK, 1 << 20},
		{"tiny limit", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 1, LimitBytes: 2}}, codes.OutOfRange, 0},
		{"negative", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: -1}}, codes.OutOfRange, 0},
		// It may fit on another node, to which only this code leads.
		{"large", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 21 * gi}}, codes.ResourceExhausted, 0},
		{"other node", &csi.CreateVolumeRequest{AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{segment("node2")}}}, codes.ResourceExhausted, 0},
		{"parameter", &csi.CreateVolumeRequest{Parameters: map[string]string{"copies": "2"}}, codes.InvalidArgument, 0},
		{"metadata", &csi.CreateVolumeRequest{Parameters: map[string]string{"csi.storage.k8s.io/pv/name": "pv"}}, codes.OK, 1 << 20},
		{"device of folders", &csi.CreateVolumeRequest{VolumeCapabilities: device}, codes.InvalidArgument, 0},
		{"both kinds", &csi.CreateVolumeRequest{VolumeCapabilities: append(device, writer...)}, codes.InvalidArgument, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.request.Name = test.name
			if test.request.VolumeCapabilities == nil {
				test.request.VolumeCapabilities = writer
			}
			r, err := c.CreateVolume(t.Context(), test.request)
			if status.Code(err) != test.code || r.GetVolume().GetCapacityBytes() != test.bytes {
				t.Errorf("got %v, %v", r, err)
			}
			if err == nil && (len(r.Volume.AccessibleTopology) != 1 || r.Volume.AccessibleTopology[0].Segments[TopologyKey] != "node1") {
				t.Errorf("accessible from %v", r.Volume.AccessibleTopology)
			}
		})
	}
}
