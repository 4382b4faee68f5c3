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
	for name, c := range map[string]struct{ output, want string }{
		"nothing is said":     {strings.ReplaceAll(output, "pods torn", "torn pods"), "1 subtests of TestStress ended, and 0 say"},
		"one of two says it":  {output + "        --- PASS: TestStress/confirming=false/InFlight (0.50s)\n", "2 subtests of TestStress ended, and 1 say"},
		"there is no subtest": {"--- PASS: TestStress (1.00s)\n", "0 subtests of TestStress ended, and 0 say"},
	} {
		if _, err := stressTable(c.output); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, and the error is %v", name, err)
		}
	}
}
