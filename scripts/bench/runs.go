package bench

import "path/filepath"

// plugin is the package of the scheduler's plugin, by its folder in the tree.
const plugin = "./pkg/scheduler/framework/plugins/volumebinding"

// Runs are all measurements, for the applied tree and our folder of integration
// tests. Upstream's walk over all objects runs fewer times, and not on 15000 nodes,
// because one pass takes minutes.
func Runs(tree, root string) []Run {
	pass := func(name, nodes, claims, updates, scheduler string, args ...string) Run {
		return Run{
			Name: "filter pass, " + name, Dir: tree, Package: plugin, Args: args,
			Bench: "^BenchmarkFindPodVolumesCapacity$/^nodes=(" + nodes + ")$/^claims=(" + claims + ")$/^updates=" + updates + "$/^scheduler=(" + scheduler + ")$",
		}
	}
	runs := []Run{
		pass("the series", "100|1000|5000|15000", "1|3", "0", "gate-off|gate-on", "-benchtime", "500ms", "-count", "6"),
		pass("upstream, 100 and 1000 nodes", "100|1000", "1|3", "0", "upstream", "-benchtime", "1x", "-count", "3"),
		pass("upstream, 5000 nodes", "5000", "1|3", "0", "upstream", "-benchtime", "1x"),
		pass("the series, with updates", "5000", "1", "1000", "gate-off|gate-on", "-benchtime", "500ms", "-count", "6"),
		{Name: "worst cases", Dir: tree, Package: plugin, Bench: "^BenchmarkWorstCases$", Args: []string{"-benchtime", "100ms", "-count", "5"}},
		{Name: "topology labels", Dir: tree, Package: plugin, Bench: "^BenchmarkCapacityLookup$", Args: []string{"-benchtime", "100ms", "-count", "5"}},
		{Name: "volumes of one class", Dir: tree, Package: plugin, Bench: "^BenchmarkGetPodVolumeClaimsOfOneClass$", Args: []string{"-count", "5"}},
		{Name: "updates and memory", Dir: tree, Package: plugin, Bench: "^BenchmarkCapacityUpdate$", Args: []string{"-count", "6"}},
	}
	ours := filepath.Join(root, "test-integration")
	for _, nodes := range []string{"500", "5000"} {
		runs = append(runs, Run{
			Name: "scheduler_perf, " + nodes + " nodes", Dir: ours, Package: "./perf",
			Bench: "^BenchmarkPerfScheduling$/^DynamicProvisioning(Object)?$/^" + nodes + "Nodes_", Args: []string{"-benchtime", "1ns"}, Repeat: 6,
		})
	}
	// Where a figure decides, it is measured several times, policy by policy.
	queue := func(name, room, policies string, repeat int) Run {
		return Run{
			Name: "queue of pods, " + name, Dir: ours, Package: "./drain", Args: []string{"-benchtime", "1x"}, Repeat: repeat,
			Bench: "^BenchmarkDrain$/^storage=/^capacity=/^room=(" + room + ")$/^delay=/^policy=(" + policies + ")$",
		}
	}
	return append(runs,
		queue("room for all", "plenty", "upstream|InFlight|confirmed", 5),
		queue("tight room", "tight", "InFlight|confirmed", 3),
		queue("whole objects", "plenty|tight", "Object", 1),
		queue("tight room, upstream", "tight", "upstream", 1),
		Run{Name: "pods that come and go", Dir: ours, Package: "./drain", Bench: "^BenchmarkChurn$", Args: []string{"-benchtime", "1x"}},
	)
}
