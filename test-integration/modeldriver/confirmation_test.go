package modeldriver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/capacity"
)

// uids returns the UIDs from, from+1, and so on.
func uids(from, n int) []types.UID {
	list := make([]types.UID, 0, n)
	for i := range n {
		list = append(list, types.UID(fmt.Sprint(from+i)))
	}
	return list
}

func volume(claim types.UID, created time.Time) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: claim}},
	}
}

func TestConfirmerNext(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		previous, created []types.UID
		volumes           []*corev1.PersistentVolume
		want              []types.UID
		news, more        bool
	}{
		"nothing":              {},
		"created":              {created: uids(1, 2), want: uids(1, 2), news: true},
		"kept":                 {previous: uids(1, 2), want: uids(1, 2)},
		"kept and created":     {previous: uids(1, 2), created: uids(2, 2), want: uids(1, 3), news: true},
		"young volume":         {volumes: []*corev1.PersistentVolume{volume("1", now)}, want: uids(1, 1), news: true},
		"old volume":           {volumes: []*corev1.PersistentVolume{volume("1", now.Add(-time.Hour))}},
		"young volume, listed": {previous: uids(1, 1), volumes: []*corev1.PersistentVolume{volume("1", now)}, want: uids(1, 1)},
		"full":                 {previous: uids(1, 256), created: uids(257, 2), want: uids(3, 256), news: true},
		"too many":             {previous: uids(1, 10), created: uids(11, 300), want: uids(11, 256), news: true, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, o := newConfirmer(), object{class: "class"}
			for _, claim := range tc.created {
				c.remember(o, claim)
			}
			got, news, more := c.next(o, capacity.Confirmation{Claims: tc.previous}, tc.volumes)
			if !slices.Equal(got, tc.want) || news != tc.news || more != tc.more {
				t.Errorf("got %v, news %t, more %t; want %v, %t, %t", got, news, more, tc.want, tc.news, tc.more)
			}
		})
	}
}

// TestConfirmerListsAll: more new volumes than a report can list are listed one
// report after the other, and each once only.
func TestConfirmerListsAll(t *testing.T) {
	c, o := newConfirmer(), object{class: "class"}
	for _, claim := range uids(1, 600) {
		c.remember(o, claim)
	}
	var previous capacity.Confirmation
	var listed []types.UID
	for more := true; more; {
		previous.Claims, _, more = c.next(o, previous, nil)
		c.written(o, previous.Claims)
		for _, claim := range previous.Claims {
			if !slices.Contains(listed, claim) {
				listed = append(listed, claim)
			}
		}
	}
	if !slices.Equal(listed, uids(1, 600)) {
		t.Errorf("listed %v, want 1 to 600", listed)
	}
	if _, news, _ := c.next(o, previous, nil); news {
		t.Error("there are news, want none: all were listed")
	}
}
