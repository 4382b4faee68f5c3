package measure

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/capacity"
	"k8s.io/component-helpers/storage/volume"
)

// reports is a record of what is written about capacity, and of the volumes that it has
// to include.
type reports struct {
	// objects are the last versions of all objects, by UID, which says what is a write.
	objects map[types.UID]*storagev1.CSIStorageCapacity
	writes  int
	// known are all volumes that there have been: each is new once.
	known sets.Set[types.UID]
	// created has the new volumes, by UID, as they were when they were seen first.
	created map[types.UID]*created
}

// created is a volume, when it was there, and when an object for its place confirmed it.
type created struct {
	volume        *corev1.PersistentVolume
	at, confirmed time.Time
}

// restart forgets what has happened, not what there is.
func (r *reports) restart() {
	if r.objects == nil {
		r.objects, r.known = map[types.UID]*storagev1.CSIStorageCapacity{}, sets.New[types.UID]()
	}
	r.writes, r.created = 0, map[types.UID]*created{}
}

// evaluate returns how often capacity was written for each new volume, and the median of
// the seconds from a volume to the report that confirms it, negative if none does.
func (r *reports) evaluate() (writes, confirmed float64) {
	var seconds []float64
	for _, c := range r.created {
		if !c.confirmed.IsZero() {
			seconds = append(seconds, c.confirmed.Sub(c.at).Seconds())
		}
	}
	return float64(r.writes) / float64(max(1, len(r.created))), median(seconds)
}

// confirm notes that an object confirms a new volume, if it does.
func (c *created) confirm(object *storagev1.CSIStorageCapacity) {
	if !c.confirmed.IsZero() || object.StorageClassName != c.volume.Spec.StorageClassName || object.NodeTopology == nil ||
		volume.CheckNodeAffinity(c.volume, object.NodeTopology.MatchLabels) != nil {
		return
	}
	reflected, err := capacity.ReflectedVolumes(object)
	if err != nil || reflected == "" {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(c.volume.ResourceVersion, reflected); err == nil && order <= 0 {
		c.confirmed = time.Now()
	}
}

// median returns that of values, -1 if there are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return -1
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Volumes is how many volumes were created.
func (tl *Timeline) Volumes() int {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	return len(tl.reports.created)
}

// volume may come after the report that confirms it: it is another watch.
func (tl *Timeline) volume(obj any, namespace string) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	volume := obj.(*corev1.PersistentVolume)
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.Namespace != namespace || tl.reports.known.Has(volume.UID) {
		return
	}
	tl.reports.known.Insert(volume.UID)
	c := &created{volume: volume, at: time.Now()}
	tl.reports.created[volume.UID] = c
	for _, object := range tl.reports.objects {
		c.confirm(object)
	}
}

func (tl *Timeline) report(obj any) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	object := obj.(*storagev1.CSIStorageCapacity)
	if last := tl.reports.objects[object.UID]; last != nil && last.ResourceVersion == object.ResourceVersion {
		return
	}
	tl.reports.objects[object.UID] = object
	tl.reports.writes++
	for _, c := range tl.reports.created {
		c.confirm(object)
	}
}

// event notes what the kubelet says of volumes that could not be rebuilt.
func (tl *Timeline) event(obj any) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	event := obj.(*corev1.Event)
	if event.Reason == "FailedMount" && strings.Contains(event.Message, "code = ResourceExhausted") && !tl.old.Has(event.InvolvedObject.UID) {
		tl.refused.Insert(event.InvolvedObject.UID)
	}
}
