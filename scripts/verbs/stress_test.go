package verbs

import (
	"slices"
	"testing"
)

func TestStressResults(t *testing.T) {
	got := stressResults(`=== RUN   TestStress
=== RUN   TestStress/confirming=false
=== RUN   TestStress/confirming=false/InFlight
    run_test.go:9: I1122 12:26:17.3] Something else
=== RUN   TestStress/confirming=false/Object
    stress_test.go:68: I1122 12:26:17.355023] 5797 volumes, 436 without room, at most 720 are allowed; 2 pods torn
--- PASS: TestStress (1.00s)
`)
	if want := []string{"confirming=false/Object: 5797 volumes, 436 without room, at most 720 are allowed; 2 pods torn"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
