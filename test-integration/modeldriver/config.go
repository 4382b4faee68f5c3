package modeldriver

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"capacityv2.internal/test-integration/history"
)

// Namespace holds the CSIStorageCapacity objects.
const Namespace = metav1.NamespaceDefault

// Config describes a driver.
type Config struct {
	// Name is that of the CSIDriver, the provisioner of its classes.
	Name string
	// Classes are the names of its storage classes. All of them use the same
	// pools. Each has one capacity object for each segment.
	Classes []string
	// Apart gives each class pools of its own in each segment, of the same sizes, so
	// that a volume changes one object. The segments of the driver are then those of
	// Segments once for each class, in the order of Classes.
	Apart bool
	// Create creates the first capacity objects, and completes them as the API server does. If nil,
	// the driver creates them one by one.
	Create func(ctx context.Context, objects []*storagev1.CSIStorageCapacity) error
	// Segments are the parts of the storage that differ in the nodes that have
	// access.
	Segments []Segment
	// TotalOnly publishes the free space as drivers do that do not know
	// availableCapacities: the sum as capacity, the largest pool as
	// maximumVolumeSize. A driver that knows it sets all three.
	TotalOnly bool
	// Thin volumes take no space, so the published numbers never change. A
	// volume must fit in a pool nevertheless.
	Thin bool
	// Expressions has the objects select nodes by expressions instead of labels.
	Expressions bool
	// RoundUp makes the sizes of volumes multiples of this, if not zero. The
	// PersistentVolumes say so.
	RoundUp int64
	// WorstFit puts volumes in the largest pool in which they fit. Otherwise, it is
	// the smallest one.
	WorstFit bool
	// Untracked is a driver that does not publish its capacity.
	Untracked bool
	// Unchecked is a driver that publishes its capacity and does not ask the scheduler
	// to look at it (CSIDriver.spec.storageCapacity is false).
	Unchecked bool
	// Rebuilding is CSIDriver.spec.volumeRebuilding. Package rebuilder does it.
	Rebuilding bool
	// Copies is the number of segments in which a new volume is, if more than one.
	Copies int
	// SilentRebuild does not publish what is free after a rebuild, as external-provisioner
	// with a driver that does not ask it to.
	SilentRebuild bool
	// AttachRequired is CSIDriver.spec.attachRequired.
	AttachRequired bool
	// Bind binds claims to their volumes, for a control plane without the PV
	// controller.
	Bind bool
	// RefreshDelay is the time between a change of the free space and its
	// publication. Zero publishes at once.
	RefreshDelay time.Duration
	// PollInterval is the time after which the free space is compared with what is
	// published, whether or not it is known to have changed. Zero never does.
	PollInterval time.Duration
	// WritesPerSecond limits the writes of capacity objects, if not zero: that many,
	// with bursts of five. The free space is known before a write waits for its
	// turn. external-provisioner has 1 by default.
	WritesPerSecond float64
	// Confirming says in an annotation up to which resourceVersion of PersistentVolumes the
	// numbers include all volumes, as a patched external-provisioner does. Then each volume
	// gets published when it is written, whether or not the numbers have changed. A driver
	// without it leaves the annotation of another one as it is.
	Confirming bool
	// VolumeDelay is the time between the creation of a volume and that of its
	// PersistentVolume. The new free space may be published in between, as with
	// external-provisioner.
	VolumeDelay time.Duration
	// Refuses returns an error for a claim whose volume cannot be created for now,
	// although there may be room. The claim keeps its selected node and is tried again
	// every second or so. It may be nil.
	Refuses func(claim *corev1.PersistentVolumeClaim) error
	// History records what takes room and gives it back, if not nil. It is not for thin volumes.
	History *history.Recorder
	// Faults decides what goes wrong with each publication. It may be nil. It is
	// not called in parallel.
	Faults func() Fault
}

// Segment is a topology segment.
type Segment struct {
	// Labels select the nodes that have access.
	Labels map[string]string
	// Pools are the sizes of the pools, in bytes, none of them used.
	Pools []int64
	// class is the only one that has these pools, if not empty.
	class string
}

// apart returns the segments with one of each class in the place of each.
func apart(segments []Segment, classes []string) []Segment {
	all := make([]Segment, 0, len(segments)*len(classes))
	for _, segment := range segments {
		for _, segment.class = range classes {
			all = append(all, segment)
		}
	}
	return all
}

// serves returns whether volumes of a class for a node are here.
func (s *Segment) serves(class string, nodeLabels map[string]string) bool {
	if s.class != "" && s.class != class {
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

// name is that of the node, or what selects the nodes.
func (s Segment) name() string {
	if name, ok := s.Labels[corev1.LabelHostname]; ok {
		return name
	}
	return labels.Set(s.Labels).String()
}

// GiB returns sizes of pools from numbers of GiB.
func GiB(sizes ...int64) []int64 {
	pools := make([]int64, 0, len(sizes))
	for _, size := range sizes {
		pools = append(pools, size<<30)
	}
	return pools
}

func quantity(bytes int64) resource.Quantity {
	return *resource.NewQuantity(bytes, resource.BinarySI)
}
