package modeldriver

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/capacity"
)

// young is the age up to which a volume gets listed although the provisioner does
// not remember it, because it has been restarted since.
const young = 5 * time.Minute

// confirmer knows which volumes the reports of a provisioner have to list.
type confirmer struct {
	mutex sync.Mutex
	// created has the claims whose volumes were created and that were not listed yet,
	// the oldest first. It is what the provisioner remembers.
	created map[object][]types.UID
	// listed has the claims that a written report has listed.
	listed map[object]sets.Set[types.UID]
}

func newConfirmer() *confirmer {
	return &confirmer{created: map[object][]types.UID{}, listed: map[object]sets.Set[types.UID]{}}
}

// remember notes a new volume.
func (c *confirmer) remember(o object, claim types.UID) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !slices.Contains(c.created[o], claim) {
		c.created[o] = append(c.created[o], claim)
	}
}

// restart forgets everything.
func (c *confirmer) restart() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	clear(c.created)
	clear(c.listed)
}

// written notes what a written report lists.
func (c *confirmer) written(o object, claims []types.UID) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.listed[o] == nil {
		c.listed[o] = sets.New[types.UID]()
	}
	c.listed[o].Insert(claims...)
	c.created[o] = slices.DeleteFunc(c.created[o], c.listed[o].Has)
}

// next returns the claims that the next report has to list: those of the previous
// one, and those that were never listed, which are young or which the provisioner
// remembers. If they are too many, the latter come first, the oldest of them first.
// news tells whether there are any, and more whether some do not fit.
func (c *confirmer) next(o object, previous capacity.Confirmation, volumes []*corev1.PersistentVolume) (claims []types.UID, news, more bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	all := slices.Clone(previous.Claims)
	seen := sets.New(all...)
	add := func(claim types.UID) {
		if !seen.Has(claim) {
			seen.Insert(claim)
			all = append(all, claim)
		}
	}
	for _, volume := range volumes {
		if claim := volume.Spec.ClaimRef.UID; time.Since(volume.CreationTimestamp.Time) < young && !c.listed[o].Has(claim) {
			add(claim)
		}
	}
	for _, claim := range c.created[o] {
		add(claim)
	}
	old, unlisted := all[:len(previous.Claims)], all[len(previous.Claims):]
	if len(unlisted) > capacity.MaxConfirmedClaims {
		unlisted, more = unlisted[:capacity.MaxConfirmedClaims], true
	}
	if n := len(old) + len(unlisted) - capacity.MaxConfirmedClaims; n > 0 {
		old = old[n:]
	}
	return slices.Concat(old, unlisted), len(unlisted) > 0, more
}

// confirmationIn returns the confirmation in an object, whether or not it is for
// the numbers: the volumes that it lists are there in any case.
func confirmationIn(object *storagev1.CSIStorageCapacity) capacity.Confirmation {
	var confirmation capacity.Confirmation
	if value, ok := object.Annotations[capacity.ConfirmationAnnotation]; ok {
		if err := json.Unmarshal([]byte(value), &confirmation); err != nil {
			return capacity.Confirmation{}
		}
	}
	return confirmation
}

// volumesOf returns the volumes of an object, the oldest first.
func (d *Driver) volumesOf(o object) []*corev1.PersistentVolume {
	if d.volumes == nil {
		return nil // Nothing was created yet.
	}
	all, err := d.volumes.List(labels.Everything())
	if err != nil {
		panic(err) // A cache does not fail.
	}
	var volumes []*corev1.PersistentVolume
	for _, volume := range all {
		if volume.Spec.StorageClassName == o.class && volume.Spec.ClaimRef != nil && d.segmentWith(volume.Spec.ClaimRef.UID) == o.segment {
			volumes = append(volumes, volume)
		}
	}
	slices.SortFunc(volumes, func(a, b *corev1.PersistentVolume) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return volumes
}
