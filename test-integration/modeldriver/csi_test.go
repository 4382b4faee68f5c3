package modeldriver

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"capacityv2.internal/test-integration/history"
)

const key = "node"

// newServer returns a driver with a pool of 100 bytes on each of two nodes.
func newServer(t *testing.T, config Config) *csiServer {
	t.Helper()
	for _, node := range []string{"a", "b"} {
		config.Segments = append(config.Segments, Segment{Labels: map[string]string{key: node, "zone": "z"}, Pools: []int64{100}})
	}
	d, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &csiServer{Driver: d, node: "b/z"}
}

func topology(node string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{key: node, "zone": "z"}}
}

// request asks for a volume on one of some nodes, or anywhere but best on the first.
func requestFor(bytes int64, nodes []string, anywhere bool) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{
		Name: "volume", CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, AccessibilityRequirements: &csi.TopologyRequirement{},
	}
	for _, node := range nodes {
		r.AccessibilityRequirements.Preferred = append(r.AccessibilityRequirements.Preferred, topology(node))
	}
	if !anywhere {
		r.AccessibilityRequirements.Requisite = r.AccessibilityRequirements.Preferred
	}
	return r
}

// TestCreateAgain: a repeated request gets the volume that exists where that is what it asks for, and
// AlreadyExists elsewhere, as CSI says. Neither takes room.
func TestCreateAgain(t *testing.T) {
	limited := requestFor(10, []string{"a"}, false)
	limited.CapacityRange.LimitBytes = 10
	small := requestFor(1, []string{"a"}, false)
	small.CapacityRange.LimitBytes = 9
	for name, tc := range map[string]struct {
		request *csi.CreateVolumeRequest
		want    codes.Code
	}{
		"the same":             {requestFor(10, []string{"a"}, false), codes.OK},
		"exactly that size":    {limited, codes.OK},
		"other nodes too":      {requestFor(10, []string{"b", "a"}, false), codes.OK},
		"rather another node":  {requestFor(10, []string{"b"}, true), codes.OK},
		"only on another node": {requestFor(10, []string{"b"}, false), codes.AlreadyExists},
		"on a node without":    {requestFor(10, []string{"c"}, false), codes.AlreadyExists},
		"larger":               {requestFor(11, []string{"a"}, false), codes.AlreadyExists},
		"smaller":              {small, codes.AlreadyExists},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, Config{History: &history.Recorder{}})
			if _, err := s.CreateVolume(t.Context(), requestFor(10, []string{"a"}, false)); err != nil {
				t.Fatal(err)
			}
			again, err := s.CreateVolume(t.Context(), tc.request)
			if code := status.Code(err); code != tc.want {
				t.Errorf("code %v (%v), want %v", code, err, tc.want)
			}
			if node := again.GetVolume().GetAccessibleTopology(); err == nil && node[0].Segments[key] != "a" {
				t.Errorf("the volume is said to be on %v, want a", node)
			}
			if a, b := s.Free("a/z")[0], s.Free("b/z")[0]; a != 90 || b != 100 {
				t.Errorf("%d bytes are free on a and %d on b, want 90 and 100", a, b)
			}
			history.Expect(t, "driver", s.History.Operations(), history.Rules{})
		})
	}
}

// TestShapes: what drivers say of two nodes with a pool of 100 bytes each, after a volume of 30 on a,
// and what they say of the volume.
func TestShapes(t *testing.T) {
	all := map[string]string{key: "a", "zone": "z"}
	for name, tc := range map[string]struct {
		config Config
		// free is what is there, a and b what is said to be: capacity, maximum and pools.
		free, a, b []int64
		bytes      int64
		topology   map[string]string
	}{
		"everything":     {Config{}, []int64{70}, []int64{70, 70, 70}, []int64{100, 100, 100}, 30, all},
		"sum":            {Config{Report: Sum}, []int64{70}, []int64{70}, []int64{100}, 30, all},
		"cached":         {Config{Lag: time.Hour}, []int64{70}, []int64{100, 100, 100}, []int64{100, 100, 100}, 30, all},
		"constant":       {Config{Thin: true}, []int64{100}, []int64{100, 100, 100}, []int64{100, 100, 100}, 30, all},
		"promised":       {Config{Overcommit: 3, Report: Sum}, []int64{270}, []int64{270}, []int64{300}, 30, all},
		"static maximum": {Config{Report: SumAndLimit(1 << 40)}, []int64{70}, []int64{70, 1 << 40}, []int64{100, 1 << 40}, 30, all},
		"extents":        {Config{RoundUp: 16, Report: Sum}, []int64{68}, []int64{68}, []int64{100}, 32, all},
		"mirrors":        {Config{Mirrors: 2, Report: Sum}, []int64{40}, []int64{40}, []int64{100}, 30, all},
		"few keys":       {Config{AffinityKeys: []string{"zone"}, Report: Sum}, []int64{70}, []int64{70}, []int64{100}, 30, map[string]string{"zone": "z"}},
		"no affinity":    {Config{AffinityKeys: []string{}, Report: Sum}, []int64{70}, []int64{70}, []int64{100}, 30, nil},
		"shared store":   {Config{Shared: true, Report: Sum}, []int64{70}, []int64{70}, []int64{70}, 30, all},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tc.config)
			created, err := s.CreateVolume(t.Context(), requestFor(30, []string{"a"}, false))
			if err != nil {
				t.Fatal(err)
			}
			if free := s.Free("a/z"); !slices.Equal(free, tc.free) {
				t.Errorf("%d bytes are free, want %d", free, tc.free)
			}
			for node, want := range map[string][]int64{"a": tc.a, "b": tc.b} {
				said, err := s.GetCapacity(t.Context(), &csi.GetCapacityRequest{AccessibleTopology: topology(node)})
				if err != nil {
					t.Fatal(err)
				}
				got := []int64{said.AvailableCapacity}
				if said.MaximumVolumeSize != nil {
					got = append(got, said.MaximumVolumeSize.Value)
				}
				if got = append(got, said.AvailableCapacities...); !slices.Equal(got, want) {
					t.Errorf("%s says %d, want %d", node, got, want)
				}
			}
			var at map[string]string
			if topologies := created.Volume.AccessibleTopology; len(topologies) > 0 {
				at = topologies[0].Segments
			}
			if created.Volume.CapacityBytes != tc.bytes || len(at) != len(tc.topology) || at["zone"] != tc.topology["zone"] {
				t.Errorf("the volume has %d bytes at %v, want %d at %v", created.Volume.CapacityBytes, at, tc.bytes, tc.topology)
			}
		})
	}
}

// TestLag: what is said follows what is free after that time, and not earlier.
func TestLag(t *testing.T) {
	d, err := New(Config{Lag: 300 * time.Millisecond, Segments: []Segment{{Pools: []int64{100}}}})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	d.Resize("", 0, -30)
	for took := time.Duration(0); ; took = time.Since(begin) {
		numbers, err := d.getCapacity(t.Context(), 0)
		switch {
		case err != nil || took > time.Minute || numbers.Capacity != 100 && numbers.Capacity != 70:
			t.Fatalf("it says %d after %v (%v), want 70", numbers.Capacity, took, err)
		case numbers.Capacity == 70 && time.Since(begin) < d.Lag:
			t.Errorf("it says so after %v, want %v at least", time.Since(begin), d.Lag)
		}
		if numbers.Capacity == 70 {
			return
		}
	}
}

// TestNegative: more was promised than there is.
func TestNegative(t *testing.T) {
	s := newServer(t, Config{Report: Sum})
	s.Resize("a/z", 0, -130)
	said, err := s.GetCapacity(t.Context(), &csi.GetCapacityRequest{AccessibleTopology: topology("a")})
	if err != nil || said.AvailableCapacity != -30 {
		t.Errorf("it says %d (%v), want -30", said.GetAvailableCapacity(), err)
	}
	if _, err := s.CreateVolume(t.Context(), requestFor(1, []string{"a"}, false)); status.Code(err) != codes.ResourceExhausted || s.Failed("a/z") != 1 || s.Failed("b/z") != 0 {
		t.Errorf("a volume: %v, %d refused on a, %d on b, want that it is refused on a", err, s.Failed("a/z"), s.Failed("b/z"))
	}
}

// TestSlow: a volume takes its room at once, and is there later. A call that ends earlier is no
// reason to begin again.
func TestSlow(t *testing.T) {
	s := newServer(t, Config{VolumeDelay: 2 * time.Second})
	first := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.CreateVolume(ctx, requestFor(30, []string{"a"}, false)); status.Code(err) != codes.DeadlineExceeded || s.Free("a/z")[0] != 70 {
		t.Fatalf("the first call: %v, %d bytes are free; want that it takes too long, and 70", err, s.Free("a/z"))
	}
	second := time.Now()
	if _, err := s.CreateVolume(t.Context(), requestFor(30, []string{"a"}, false)); err != nil || s.Free("a/z")[0] != 70 {
		t.Errorf("the second call: %v, %d bytes are free; want none, and 70", err, s.Free("a/z"))
	}
	if a, b := time.Since(first), time.Since(second); a < s.VolumeDelay || b >= s.VolumeDelay {
		t.Errorf("the volume was there %v after the first call and %v after the second one, want %v after the first one", a, b, s.VolumeDelay)
	}
}

// TestNodePlugin: the plugin of a node says where that is.
func TestNodePlugin(t *testing.T) {
	info, err := newServer(t, Config{}).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.NodeId != "b/z" || info.AccessibleTopology.Segments[key] != "b" {
		t.Errorf("it says %v (%v), want b", info, err)
	}
}
