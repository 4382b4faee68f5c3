// SPDX-License-Identifier: Apache-2.0

package drivershapes

import (
	"time"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// shape is a way in which drivers report their capacity, and lay out volumes.
type shape struct {
	name string
	// seen says in which drivers, or where it was reported. advice is what its author should do.
	seen, advice string
	// pools are those of a node, in GiB. Nil is one of 100.
	pools []int64
	// config is that of the driver, without names and segments. Immediate volumes are created by a provisioner on each node.
	config modeldriver.Config
	// model has the model driver publish in place of external-provisioner, which cannot do this.
	model bool
	// flags are those of external-provisioner.
	flags []string
	// zone gives segments another label, whose value all have.
	zone bool
	// shrink is how much of the second node of each load is taken from the driver when it has
	// published it, in GiB.
	shrink int64
	// classes is how many there are, if more than one.
	classes int
	// restarts has the objects of a load deleted between its first pods and the others, as the garbage
	// collector does with those of a pod that is gone.
	restarts bool
	// without are loads that are left out.
	without []string
	// static is the size of a volume on each node that exists before, if any.
	static string
	// refuses are loads of which the driver refuses volumes with the gate, too: it has less room than it says.
	refuses []string
	// repeats is set if it goes on saying so. Then pods wait because nodes have refused their volumes.
	repeats bool
	// guide is a section that says why the driver is worse off with the gate, as file#heading.
	guide string
	// worse are the loads some of whose pods wait for what is reserved, on all nodes, and do not with the
	// stock programs. If it restarts, that is luck.
	worse []string
	// later is how much later a pod may have its node.
	later time.Duration
}

// slowly is how long a volume takes that is slow.
const slowly = 4 * time.Second

// refused is the reason of a node that has refused a volume of the pod.
const refused = "node(s) recently failed to provision a volume of the pod"

// full are all loads that ask for more than there is, or nearly.
var full = []string{"tight", "pairs", "burst", "churn"}

// afterRefusals are reasons of nodes, beside too little room, where volumes were refused. The first volume of a pod keeps it on
// its node.
var afterRefusals = []string{refused, clustertest.Reserved, clustertest.VolumeElsewhere}

// poll is for drivers whose numbers change by themselves.
var poll = []string{"--capacity-poll-interval=1s"}

var shapes = []shape{
	{
		name: "ideal", seen: "drivers with one pool that ask their storage", advice: "nothing",
		config: modeldriver.Config{Report: modeldriver.Sum},
	},
	{
		// A minute is three seconds here.
		name: "cached", seen: "OpenEBS LVM, TopoLVM", advice: "make the cache newer after each volume",
		config: modeldriver.Config{Report: modeldriver.Sum, Lag: 3 * time.Second}, flags: poll,
	},
	{
		name: "largest", seen: "OpenEBS LVM", advice: "report pools",
		pools: []int64{60, 40}, config: modeldriver.Config{Report: modeldriver.Largest},
		guide: "explanation/how-it-works.md#What no reservation can know", worse: []string{"tight", "pairs", "burst"},
	},
	{
		name: "largest and sum", seen: "Longhorn 1.12", advice: "report pools",
		pools: []int64{60, 40}, config: modeldriver.Config{Report: modeldriver.SumAndLargest},
	},
	{
		name: "constant", seen: "thin LVM, csi-driver-host-path without limits", advice: "report size × ratio − promised",
		config: modeldriver.Config{Report: modeldriver.Sum, Thin: true},
		guide:  "explanation/how-it-works.md#What no reservation can know", worse: []string{"tight", "pairs", "burst"},
	},
	{
		// The ratio of a node is lowered below what was promised there.
		name: "promised", seen: "TopoLVM, miroir", advice: "nothing; with the stock provisioner, report 0 where it is negative",
		pools: []int64{50}, config: modeldriver.Config{Report: modeldriver.Sum, Overcommit: 2}, shrink: 120, flags: poll,
	},
	{
		name: "static maximum", seen: "Dell Unity and PowerStore, Lenovo", advice: "report no maximum above what is free",
		config: modeldriver.Config{Report: modeldriver.SumAndLimit(1 << 40)}, refuses: []string{"tight", "burst", "churn"}, repeats: true,
	},
	{
		name: "fragmented", seen: "external-provisioner #697, DirectPV #691", advice: "report pools",
		pools: []int64{35, 35, 30}, config: modeldriver.Config{Report: modeldriver.Sum}, refuses: full, repeats: true,
	},
	{
		name: "few keys", seen: "ZFS-LocalPV #489, OpenEBS LVM", advice: "nothing",
		config: modeldriver.Config{Report: modeldriver.Sum, AffinityKeys: []string{nodeLabel}}, zone: true,
	},
	{
		// external-provisioner removes the second object, unless it is another one's.
		name: "overlapping", seen: "external-provisioner #1161, Dell, ScyllaDB #10", advice: "delete objects that nobody updates", model: true,
		config: modeldriver.Config{Report: modeldriver.Sum, Overlapping: 2, WritesPerSecond: 5},
	},
	{
		// A driver for each load has its store, and each has a part of external-provisioner.
		name: "two classes on one store", seen: "TopoLVM #625", advice: "one class, or a part of the store for each", model: true,
		config: modeldriver.Config{Report: modeldriver.Sum, WritesPerSecond: 5}, classes: 2, refuses: full,
	},
	{
		name: "one store behind all nodes", seen: "Longhorn #12807", advice: "one object for all nodes", model: true,
		config: modeldriver.Config{Report: modeldriver.Sum, WritesPerSecond: 5, Shared: true}, refuses: full,
	},
	{
		// Minutes are four seconds here. The numbers show the room that a volume takes before it exists.
		name: "slow", seen: "volcano #4050, host-path #571", advice: "nothing",
		config: modeldriver.Config{Report: modeldriver.Sum, VolumeDelay: slowly}, flags: poll,
		guide: "explanation/how-it-works.md#Reservations", later: slowly,
	},
	{
		name: "extents", seen: "LVM", advice: "report whole extents",
		config: modeldriver.Config{Report: modeldriver.Sum, RoundUp: 8 << 30}, refuses: full,
	},
	{
		// Which of the pairs get both volumes is luck: each half of a pair takes room for a whole one.
		name: "mirrors", seen: "raid1", advice: "report half",
		config: modeldriver.Config{Report: modeldriver.Sum, Mirrors: 2}, refuses: full, repeats: true, without: []string{"pairs"},
	},
	{
		name: "pod owns object", seen: "Azure local-csi-driver", advice: "let a controller own it",
		config: modeldriver.Config{Report: modeldriver.Sum}, restarts: true,
		guide: "explanation/how-it-works.md#What no reservation can know", worse: []string{"tight"},
	},
	{
		// One load is enough: each volume may come to any node.
		name: "immediate, on each node", seen: "rawfile-localpv #282", advice: "nothing, if its maximum is its largest pool",
		pools: []int64{50, 50}, config: modeldriver.Config{Report: modeldriver.SumAndLargest, Immediate: true}, refuses: full,
		flags: []string{"--capacity-for-immediate-binding", "--node-deployment-base-delay=500ms", "--node-deployment-max-delay=1s"}, without: []string{"plenty", "pairs", "burst", "churn"},
	},
	{
		name: "static and dynamic", seen: "kubernetes #83323", advice: "nothing",
		config: modeldriver.Config{Report: modeldriver.Sum}, static: "30Gi",
	},
}
