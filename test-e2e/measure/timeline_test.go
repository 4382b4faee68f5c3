// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestBesideRoom(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		changes     []change
		from, until int
		want        int
	}{
		"always free":                          {nil, 0, 5, 5},
		"full before":                          {[]change{{at(1), "a", 1}, {at(2), "b", 1}}, 3, 9, 0},
		"full meanwhile":                       {[]change{{at(1), "a", 1}, {at(4), "b", 1}}, 2, 9, 2},
		"free again":                           {[]change{{at(1), "a", 1}, {at(2), "b", 1}, {at(6), "a", -1}}, 3, 9, 3},
		"two times, the longer":                {[]change{{at(1), "a", 1}, {at(4), "b", 1}, {at(5), "b", -1}, {at(6), "b", 1}}, 1, 9, 3},
		"changes that come later do not count": {[]change{{at(7), "a", 1}, {at(8), "b", 1}}, 0, 5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			tl := &Timeline{changes: tc.changes}
			if got := tl.besideRoom(map[string]int{"a": 1, "b": 1}, at(tc.from), at(tc.until)); got != time.Duration(tc.want)*time.Second {
				t.Errorf("%s, want %d s", got, tc.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	tl := &Timeline{old: sets.New[types.UID]("old"), refused: sets.New[types.UID]()}
	event := func(uid, reason, message string) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Reason: reason, Message: message}
	}
	const full = "rpc error: code = ResourceExhausted desc = no room"
	for _, e := range []*corev1.Event{
		event("a", "FailedMount", full), event("a", "FailedMount", full), event("b", "FailedMount", "rpc error: code = Aborted desc = copying"),
		event("old", "FailedMount", full), event("c", "FailedScheduling", full),
	} {
		tl.event(e)
	}
	if !tl.refused.Equal(sets.New[types.UID]("a")) {
		t.Errorf("refused are %v, want a", tl.refused)
	}
}
