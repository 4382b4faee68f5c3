package verbs

import (
	"strings"
	"testing"
)

func TestStressTable(t *testing.T) {
	const output = `=== RUN   TestStress
=== RUN   TestStress/confirming=false
=== RUN   TestStress/confirming=false/InFlight
    run_test.go:9: I1122 12:26:17.3] Something else
=== RUN   TestStress/confirming=false/Object
    stress_test.go:68: I1122 12:26:17.355023] 5797 volumes, 436 without room, at most 720 are allowed; 2 pods torn; longest wait beside room: 5.7s, where the scheduler can know: 5.7s
--- PASS: TestStress (1.00s)
    --- PASS: TestStress/confirming=false (1.00s)
        --- PASS: TestStress/confirming=false/Object (0.50s)
`
	got, err := stressTable(output)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got, "| ---: |\n| confirming=false/Object | 5797 | 436 | 720 | 2 | 5.7s | 5.7s |\n") {
		t.Errorf("got %s", got)
	}
	if _, err := stressTable(strings.ReplaceAll(output, "pods torn", "torn pods")); err == nil || !strings.Contains(err.Error(), "1 subtests of TestStress ended, and 0 say") {
		t.Errorf("nothing is said, and the error is %v", err)
	}
}
