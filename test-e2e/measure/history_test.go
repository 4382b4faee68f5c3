package measure

import (
	"slices"
	"testing"

	"capacityv2.internal/test-e2e/driver/pool"
)

// TestOperations reads a log with a volume that is created, asked for again and deleted, one that finds no room, one that
// another node takes over, and one during which the driver is killed.
func TestOperations(t *testing.T) {
	v, w := pool.ID("pvc-v", "n"), pool.ID("pvc-w", "n")
	log := `I1124 12:00:00.000000       1 run.go:57] "Room" event="pool" node="n" volume="" pool="fast" bytes=100 pools="" at="2026-11-24T12:00:00Z"
I1124 12:00:00.000000       1 run.go:57] "Room" event="has" node="n" volume="old" pool="fast" bytes=10 pools="" at="2026-11-24T12:00:00Z"
I1124 12:00:00.000000       1 run.go:57] "Room" event="started" node="n" volume="" pool="" bytes=0 pools="" at="2026-11-24T12:00:00.1Z"
I1124 12:00:01.000000       1 serve.go:36] "Serving" socket="/csi/csi.sock"
I1124 12:00:02.000000       1 run.go:57] "Room" event="takes" node="n" volume="` + v + `" pool="fast" bytes=60 pools="fast,slow" at="2026-11-24T12:00:02Z"
I1124 12:00:02.000000       1 run.go:57] "Room" event="gives back" node="other" volume="old" pool="a" bytes=10 pools="" at="2026-11-24T12:00:02.2Z"
I1124 12:00:02.000000       1 run.go:57] "Room" event="taken" node="n" volume="` + v + `" pool="fast" bytes=60 pools="fast,slow" at="2026-11-24T12:00:02.5Z"
I1124 12:00:02.000000       1 run.go:57] "Room" event="given back" node="other" volume="old" pool="a" bytes=10 pools="" at="2026-11-24T12:00:02.6Z"
I1124 12:00:03.000000       1 serve.go:30] "Call ended" event="create" name="pvc-v" bytes=60 code="OK" began="2026-11-24T12:00:01Z" at="2026-11-24T12:00:03Z"
I1124 12:00:04.000000       1 run.go:57] "Room" event="refused" node="n" volume="` + w + `" pool="" bytes=60 pools="" at="2026-11-24T12:00:04Z"
E1124 12:00:05.000000       1 serve.go:27] "Call failed" err="rpc error: code = ResourceExhausted desc = no pool" method="/csi.v1.Controller/CreateVolume" request="{}"
I1124 12:00:05.000000       1 serve.go:30] "Call ended" event="create" name="pvc-w" bytes=60 code="ResourceExhausted" began="2026-11-24T12:00:03Z" at="2026-11-24T12:00:05Z"
I1124 12:00:06.000000       1 serve.go:30] "Call ended" event="create" name="pvc-v" bytes=60 code="OK" began="2026-11-24T12:00:05Z" at="2026-11-24T12:00:06Z"
I1124 12:00:07.000000       1 run.go:57] "Room" event="gives back" node="n" volume="` + v + `" pool="fast" bytes=60 pools="" at="2026-11-24T12:00:07Z"
I1124 12:00:07.000000       1 run.go:57] "Room" event="given back" node="n" volume="` + v + `" pool="fast" bytes=60 pools="" at="2026-11-24T12:00:07.5Z"
I1124 12:00:08.000000       1 serve.go:33] "Call ended" event="delete" volume="` + v + `" code="OK" began="2026-11-24T12:00:06.5Z" at="2026-11-24T12:00:08Z"
I1124 12:00:09.000000       1 run.go:57] "Room" event="takes" node="n" volume="lost" pool="fast" bytes=5 pools="" at="2026-11-24T12:00:09Z"
`
	operations, err := operations(log, "n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range operations {
		at := "at an unknown moment"
		if !o.At.IsZero() {
			at = "at " + o.At.Format("05.0")
		}
		until := "-"
		if !o.Return.IsZero() {
			until = o.Return.Format("05.0")
		}
		got = append(got, o.Node+" "+o.Call.Format("05.0")+" "+until+" "+at+": "+o.String())
	}
	want := []string{
		"n 00.1 00.1 at 00.1: start with 1 pools and 1 volumes",
		"n 01.0 03.0 at 02.5: create " + v + " of 60 bytes: pool fast",
		"other 02.2 02.6 at 02.6: delete old: pool a",
		"n 03.0 05.0 at 04.0: create " + w + " of 60 bytes: refused",
		"n 05.0 06.0 at an unknown moment: create " + v + " of 60 bytes: ok",
		"n 06.5 08.0 at 07.5: delete " + v + ": pool fast",
		"n 09.0 - at an unknown moment: create lost of 5 bytes: unknown",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if allowed := operations[1].Allowed; !slices.Equal(allowed, []string{"fast", "slow"}) {
		t.Errorf("allowed pools %q, want fast and slow", allowed)
	}
}
