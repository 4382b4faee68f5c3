// SPDX-License-Identifier: Apache-2.0

package modeldriver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace holds the CSIStorageCapacity objects.
const Namespace = metav1.NamespaceDefault

// Config describes a driver.
type Config struct {
	// Name is that of the CSIDriver, the provisioner of its classes.
	Name string
	// Classes are the names of its storage classes. All of them use the same pools.
	Classes []string
	// Segments are the parts of the storage that differ in the nodes that have access.
	Segments []Segment

	// How the storage is laid out, and what volumes take of it:

	// Shared has all segments use the pools of the first one: one store behind all nodes.
	Shared bool
	// Overcommit is how many bytes are promised for each byte of a pool, if not zero.
	Overcommit int64
	// Thin volumes take no space, so the numbers never change. A volume must fit in a pool
	// nevertheless.
	Thin bool
	// RoundUp makes the sizes of volumes multiples of this, if not zero. The
	// PersistentVolumes say so.
	RoundUp int64
	// Mirrors is how many bytes a volume takes for each of its own, if not zero.
	Mirrors int64
	// WorstFit puts volumes in the largest pool in which they fit. Otherwise, it is the
	// smallest one.
	WorstFit bool
	// Replicas is the number of segments in which a new volume is, if more than one.
	Replicas int
	// Rebuilding is CSIDriver.spec.volumeRebuilding. A driver that was started does it.
	Rebuilding bool
	// AttachRequired is CSIDriver.spec.attachRequired.
	AttachRequired bool

	// What the driver says of its pools:

	// Report is what it says of the pools of a segment. If nil, that is [Everything].
	Report Report
	// Lag has it say what was free so long ago, as from a cache.
	Lag time.Duration
	// BeforeAnswer is called when the answer is known and does not change any more. The answer waits
	// for it, and is its error. Several may wait at once. It may be nil.
	BeforeAnswer func(ctx context.Context) error

	// How new volumes come:

	// Immediate has the classes bind at once, before a pod has a node.
	Immediate bool
	// BeforeCreate is called, with the name of the claim, before a volume takes room. It may
	// wait. After its error, the claim keeps its selected node, and is tried again every
	// second or so. It may be nil.
	BeforeCreate func(ctx context.Context, claim string) error
	// VolumeDelay is the time between a volume, which takes its room at once, and its
	// PersistentVolume.
	VolumeDelay time.Duration
	// AffinityKeys are the labels of a segment that the node affinity of a volume has. Nil
	// are all. An empty list is for volumes without node affinity.
	AffinityKeys []string
	// Bind binds claims to their volumes, for a control plane without the PV controller.
	Bind bool

	// How a driver that was started publishes. A real external-provisioner has its own ways:

	// Untracked is a driver that does not publish its capacity.
	Untracked bool
	// Unchecked is a driver that publishes its capacity and does not ask the scheduler
	// to look at it (CSIDriver.spec.storageCapacity is false).
	Unchecked bool
	// Create creates the first objects, and completes them as the API server does. If nil,
	// the driver creates them one by one.
	Create func(ctx context.Context, objects []*storagev1.CSIStorageCapacity) error
	// Expressions has the objects select nodes by expressions instead of labels.
	Expressions bool
	// Overlapping is how many objects there are for each segment and class, if not zero.
	Overlapping int
	// RefreshDelay is the time between a change of the free space and its publication. Zero
	// publishes at once.
	RefreshDelay time.Duration
	// PollInterval is the time after which the free space is compared with what is
	// published, whether or not it is known to have changed. Zero never does.
	PollInterval time.Duration
	// WritesPerSecond limits the writes of objects, if not zero: that many, with bursts of
	// five. The free space is known before a write waits for its turn. external-provisioner
	// has 1 by default.
	WritesPerSecond float64
	// Confirming says in an annotation up to which resourceVersion of PersistentVolumes the
	// numbers include all volumes, as a patched external-provisioner does. Then each volume
	// gets published when it is written, whether or not the numbers have changed. A driver
	// without it leaves the annotation of another one as it is.
	Confirming bool
	// SilentRebuild does not publish what is free after a rebuild, as external-provisioner
	// with a driver that does not ask it to.
	SilentRebuild bool
	// Faults decides what goes wrong with each publication. It may be nil. It is not called
	// in parallel.
	Faults func() Fault
}

// Segment is a topology segment.
type Segment struct {
	// Labels select the nodes that have access.
	Labels map[string]string
	// Pools are the sizes of the pools, in bytes, none of them used.
	Pools []int64
	// Class is the only one that has these pools, if not empty. Then a volume changes one object.
	Class string
}

// Name is what the segment is called here: the values of its labels. It is the name of a node
// whose label says so.
func (s *Segment) Name() string {
	var values []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		values = append(values, s.Labels[key])
	}
	return strings.Join(values, "/")
}

// serves returns whether volumes of a class for a node are here. An empty class is any.
func (s *Segment) serves(class string, nodeLabels map[string]string) bool {
	if s.Class != "" && class != "" && s.Class != class {
		return false
	}
	// Not a selector: this is called for thousands of segments for each volume.
	for key, value := range s.Labels {
		if got, ok := nodeLabels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// GiB returns sizes of pools from numbers of GiB.
func GiB(sizes ...int64) []int64 {
	pools := make([]int64, 0, len(sizes))
	for _, size := range sizes {
		pools = append(pools, size<<30)
	}
	return pools
}

// quantity is what an API object may have: less than nothing is nothing.
func quantity(bytes int64) resource.Quantity {
	return *resource.NewQuantity(max(bytes, 0), resource.BinarySI)
}
