package api

import (
	"math"
	"os"
	"testing"
	"time"

	"capacityv2.internal/test-e2e/measure"
	"capacityv2.internal/test-integration/history"
)

// TestHistory checks what the reference driver was asked for until now, by all specs that ran before. Some of
// them send volumes where there is no room, so refusals are legal, but not beside room.
func TestHistory(t *testing.T) {
	if os.Getenv("CAPACITYV2_DRIVER") == "" {
		t.Skip("this cluster has no reference driver (make up without DRIVER=reference)")
	}
	cluster := measure.Cluster{Interface: connect(t)}
	operations, err := cluster.History(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	history.Expect(t, "specs", operations, history.Rules{Refusals: math.MaxInt})
}
