// SPDX-License-Identifier: Apache-2.0

package server

import (
	"reflect"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestGetCapacity(t *testing.T) {
	p := newPlugin(t, "pool0=100Mi", "pool1=50Mi", "pool2=10Mi")
	if _, err := p.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "v", VolumeCapabilities: writer, CapacityRange: &csi.CapacityRange{RequiredBytes: 5 * mi}, Parameters: map[string]string{"pools": "pool2"},
	}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		request  *csi.GetCapacityRequest
		sum, max int64
		list     []int64
	}{
		"all pools":       {request: &csi.GetCapacityRequest{}, sum: 155, max: 100, list: []int64{5, 50, 100}},
		"pools of class":  {request: &csi.GetCapacityRequest{Parameters: map[string]string{"pools": "pool2, pool1"}}, sum: 55, max: 50, list: []int64{5, 50}},
		"unknown pool":    {request: &csi.GetCapacityRequest{Parameters: map[string]string{"pools": "pool7"}}, list: []int64{0}},
		"this node":       {request: &csi.GetCapacityRequest{AccessibleTopology: segment("node1")}, sum: 155, max: 100, list: []int64{5, 50, 100}},
		"another node":    {request: &csi.GetCapacityRequest{AccessibleTopology: segment("node2")}, list: []int64{0}},
		"other topology":  {request: &csi.GetCapacityRequest{AccessibleTopology: &csi.Topology{Segments: map[string]string{"zone": "node1"}}}, list: []int64{0}},
		"several writers": {request: &csi.GetCapacityRequest{VolumeCapabilities: []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)}}, list: []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.GetCapacity(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			for i := range test.list {
				test.list[i] *= mi
			}
			slices.Sort(got.AvailableCapacities)
			if got.AvailableCapacity != test.sum*mi || got.MaximumVolumeSize.GetValue() != test.max*mi || !reflect.DeepEqual(got.AvailableCapacities, test.list) {
				t.Errorf("got %v; expected %d, at most %d, %d", got, test.sum*mi, test.max*mi, test.list)
			}
		})
	}
	if _, err := p.GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"pool": "pool2"}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("misspelt parameter: %v", err)
	}
}

func TestCreateVolume(t *testing.T) {
	c := newPlugin(t, "pool0=10Mi", "pool1=20Mi").Controller
	for _, test := range []struct {
		name    string
		request *csi.CreateVolumeRequest
		code    codes.Code
		bytes   int64
	}{
		{"a", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 5 * mi}}, codes.OK, 5 * mi},
		{"a", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 5 * mi}}, codes.OK, 5 * mi},
		{"a", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 6 * mi}}, codes.AlreadyExists, 0},
		{"a", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{LimitBytes: 4 * mi}}, codes.AlreadyExists, 0},
		{"a", &csi.CreateVolumeRequest{VolumeCapabilities: device, CapacityRange: &csi.CapacityRange{RequiredBytes: 5 * mi}}, codes.AlreadyExists, 0},
		{"a", &csi.CreateVolumeRequest{Parameters: map[string]string{"pools": "pool0"}}, codes.AlreadyExists, 0},
		{"no size", &csi.CreateVolumeRequest{}, codes.OK, mi},
		{"tiny", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 1}}, codes.OK, mi},
		{"tiny limit", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 1, LimitBytes: 2}}, codes.OutOfRange, 0},
		{"negative", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: -1}}, codes.OutOfRange, 0},
		// It may fit on another node, to which only this code leads.
		{"large", &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 21 * mi}}, codes.ResourceExhausted, 0},
		{"other node", &csi.CreateVolumeRequest{AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{segment("node2")}}}, codes.ResourceExhausted, 0},
		{"parameter", &csi.CreateVolumeRequest{Parameters: map[string]string{"copies": "2"}}, codes.InvalidArgument, 0},
		{"metadata", &csi.CreateVolumeRequest{Parameters: map[string]string{"csi.storage.k8s.io/pv/name": "pv"}}, codes.OK, mi},
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
			if err == nil && (len(r.Volume.AccessibleTopology) != 1 || r.Volume.AccessibleTopology[0].Segments[TopologyKey] != "node1" || r.Volume.VolumeId != test.name+"@node1") {
				t.Errorf("got %v", r.Volume)
			}
		})
	}
}
