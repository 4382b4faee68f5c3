package verbs

import (
	"strings"
	"testing"
)

func TestStressReport(t *testing.T) {
	got := stressReport(StressOptions{Pods: 12000, Seed: 7}, `=== RUN   TestStress
=== RUN   TestStress/confirming=false
=== RUN   TestStress/confirming=false/InFlight
    run_test.go:9: I1122 12:26:17.3] Something else
=== RUN   TestStress/confirming=false/Object
    stress_test.go:68: I1122 12:26:17.355023] 5797 volumes, 436 without room, at most 720 are allowed; 2 pods torn; longest wait beside room: 5.7s, where the scheduler can know: 5.7s
--- PASS: TestStress (1.00s)
`)
	if !strings.Contains(got, "12000, the seed 7") || !strings.HasSuffix(got, "| ---: |\n| confirming=false/Object | 5797 | 436 | 720 | 2 | 5.7s | 5.7s |\n") {
		t.Errorf("got %s", got)
	}
}
