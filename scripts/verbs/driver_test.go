package verbs

import (
	"testing"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/progress"
)

func TestCheckDriver(t *testing.T) {
	for _, tc := range []struct {
		driver string
		mode   cluster.Mode
		refuse bool
	}{
		{"", cluster.ModeControlPlane, false},
		{"reference", cluster.ModeFull, false},
		{"reference", cluster.ModeControlPlane, true},
		{"reference", cluster.ModeHost, true},
		{"hostpath", cluster.ModeFull, true},
	} {
		err := checkDriver(tc.driver)
		if err == nil {
			err = checkDriverMode(tc.driver, tc.mode)
		}
		if progress.IsRefusal(err) != tc.refuse {
			t.Errorf("DRIVER=%s in the mode %s: %v, want a refusal: %t", tc.driver, tc.mode, err, tc.refuse)
		}
	}
}
