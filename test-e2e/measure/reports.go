package measure

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/capacity"
)

// reports is a record of what is written about capacity, and of the volumes that it has
// to include.
type reports struct {
	// versions are the last ones of all objects, by UID, which says what is a write.
	versions map[types.UID]string
	writes   int
	// known are all volumes that there have been: each is new once.
	known sets.Set[types.UID]
	// created is when the volume of a claim was there, listed when a report listed it.
	created, listed map[types.UID]time.Time
}

// restart forgets what has happened, not what there is.
func (r *reports) restart() {
	if r.versions == nil {
		r.versions, r.known = map[types.UID]string{}, sets.New[types.UID]()
	}
	r.writes, r.created, r.listed = 0, map[types.UID]time.Time{}, map[types.UID]time.Time{}
}

// evaluate returns how often capacity was written for each new volume, and the median of
// the seconds from a volume to the report that lists it, negative if none is listed.
func (r *reports) evaluate() (writes, listed float64) {
	var seconds []float64
	for claim, created := range r.created {
		if at, ok := r.listed[claim]; ok {
			seconds = append(seconds, max(0, at.Sub(created).Seconds()))
		}
	}
	return float64(r.writes) / float64(max(1, len(r.created))), median(seconds)
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

func (tl *Timeline) volume(obj any, namespace string) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	volume := obj.(*corev1.PersistentVolume)
	if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == namespace && !tl.reports.known.Has(volume.UID) {
		tl.reports.known.Insert(volume.UID)
		tl.reports.created[ref.UID] = time.Now()
	}
}

func (tl *Timeline) report(obj any) {
	tl.mutex.Lock()
	defer tl.mutex.Unlock()
	object := obj.(*storagev1.CSIStorageCapacity)
	if tl.reports.versions[object.UID] == object.ResourceVersion {
		return
	}
	tl.reports.versions[object.UID] = object.ResourceVersion
	tl.reports.writes++
	confirmation, err := capacity.ConfirmationOf(object)
	if err != nil || confirmation == nil {
		return
	}
	for _, claim := range confirmation.Claims {
		if _, ok := tl.reports.listed[claim]; !ok {
			tl.reports.listed[claim] = time.Now()
		}
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
