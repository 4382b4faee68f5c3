package centraldriver

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-integration/history"
)

const key = "node"

// request asks for a volume on one of some nodes, or anywhere but best on the first.
func request(bytes int64, nodes []string, anywhere bool) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{
		Name: "volume", CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, AccessibilityRequirements: &csi.TopologyRequirement{},
	}
	for _, node := range nodes {
		r.AccessibilityRequirements.Preferred = append(r.AccessibilityRequirements.Preferred, &csi.Topology{Segments: map[string]string{key: node}})
	}
	if !anywhere {
		r.AccessibilityRequirements.Requisite = r.AccessibilityRequirements.Preferred
	}
	return r
}

// TestCreateAgain: a repeated request gets the volume that exists where that is what it asks for, and
// AlreadyExists elsewhere, as CSI says. Neither takes room.
func TestCreateAgain(t *testing.T) {
	limited := request(10, []string{"a"}, false)
	limited.CapacityRange.LimitBytes = 10
	small := request(1, []string{"a"}, false)
	small.CapacityRange.LimitBytes = 9
	for name, tc := range map[string]struct {
		request *csi.CreateVolumeRequest
		want    codes.Code
	}{
		"the same":             {request(10, []string{"a"}, false), codes.OK},
		"exactly that size":    {limited, codes.OK},
		"other nodes too":      {request(10, []string{"b", "a"}, false), codes.OK},
		"rather another node":  {request(10, []string{"b"}, true), codes.OK},
		"only on another node": {request(10, []string{"b"}, false), codes.AlreadyExists},
		"larger":               {request(11, []string{"a"}, false), codes.AlreadyExists},
		"smaller":              {small, codes.AlreadyExists},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Driver{TopologyKey: key, History: &history.Recorder{}}
			d.SetPools("a", 100)
			d.SetPools("b", 100)
			if _, err := d.CreateVolume(t.Context(), request(10, []string{"a"}, false)); err != nil {
				t.Fatal(err)
			}
			again, err := d.CreateVolume(t.Context(), tc.request)
			if code := status.Code(err); code != tc.want {
				t.Errorf("code %v (%v), want %v", code, err, tc.want)
			}
			if node := again.GetVolume().GetAccessibleTopology(); err == nil && node[0].Segments[key] != "a" {
				t.Errorf("the volume is said to be on %v, want a", node)
			}
			if a, b := d.Free("a")[0], d.Free("b")[0]; a != 90 || b != 100 {
				t.Errorf("%d bytes are free on a and %d on b, want 90 and 100", a, b)
			}
			history.Expect(t, "driver", d.History.Operations(), history.Rules{})
		})
	}
}
