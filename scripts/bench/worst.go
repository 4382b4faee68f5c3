package bench

import (
	"fmt"
)

// Worst is a line of the table of worst cases.
type Worst struct {
	Claims, Pools, Objects, Classes int
	// GateOff and GateOn are for one node. Check is the part of the series that is
	// joint evaluation.
	GateOff, GateOn, Check string
	// All is the time of the series for 5000 nodes.
	All string
}

// Worsts are the lines of the table of worst cases.
func (r Report) Worsts() []Worst {
	var lines []Worst
	for _, claims := range []int{64, 257, 1000} {
		for _, pools := range []int{16, 256} {
			for _, objects := range []int{1, 16} {
				for _, classes := range []int{1, 50} {
					lines = append(lines, r.worst(claims, pools, objects, classes))
				}
			}
		}
	}
	return lines
}

func (r Report) worst(claims, pools, objects, classes int) Worst {
	name := func(enabled bool) string {
		return fmt.Sprintf("WorstCases/claims=%d/pools=%d/objects=%d/classes=%d/CSIStorageCapacityV2=%t", claims, pools, objects, classes, enabled)
	}
	w := Worst{
		Claims: claims, Pools: pools, Objects: objects, Classes: classes, Check: "not run", All: "not run",
		GateOff: r.Samples.Show(name(false), second), GateOn: r.Samples.Show(name(true), second),
	}
	if ns, ok := r.Samples.Median(name(true), "check-sec/op"); ok {
		w.Check = fmt.Sprintf("%.3g µs", ns*1e6)
	}
	if seconds, ok := r.Samples.Median(name(true), second); ok {
		w.All = fmt.Sprintf("%.2g s", seconds*5000)
	}
	return w
}

// Lookup is a line of the table of topology labels.
type Lookup struct {
	// Shape says how the objects select their nodes.
	Shape          string
	Nodes, Classes int
	// Walk is the time to find the object of one node among all, Index with the
	// index.
	Walk, Index string
}

// Lookups are the lines of the table of topology labels.
func (r Report) Lookups() []Lookup {
	var lines []Lookup
	for _, shape := range []string{"host", "shared_value", "expression"} {
		for _, classes := range []int{1, 50} {
			if classes == 50 && shape != "host" {
				continue // the shape makes no difference
			}
			name := fmt.Sprintf("CapacityLookup/topology=%s/nodes=5000/classes=%d", shape, classes)
			lines = append(lines, Lookup{
				Shape: shapeNames[shape], Nodes: 5000, Classes: classes,
				Walk: r.Samples.Show(name+"/walk", second), Index: r.Samples.Show(name+"/index", second),
			})
		}
	}
	return lines
}

var shapeNames = map[string]string{
	"host":         "label with the name of the node",
	"shared_value": "the same, and one that all nodes have",
	"expression":   "match expression",
}

// PreFilter shows the time for a pod with 64 claims of a class with 10000 volumes.
func (r Report) PreFilter() string {
	return r.Samples.Show("GetPodVolumeClaimsOfOneClass", second)
}
