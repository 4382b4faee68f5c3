package history

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// begin is when the histories of these tests begin.
var begin = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// op is an operation on the node n from one second to another; to 0 is one whose end nobody saw.
func op(kind Kind, volume string, bytes int64, from, to int, result Result, pool string) Operation {
	o := Operation{Node: "n", Kind: kind, Volume: volume, Bytes: bytes, Call: begin.Add(time.Duration(from) * time.Second), Result: result, Pool: pool}
	if to > 0 {
		o.Return = begin.Add(time.Duration(to) * time.Second)
	}
	return o
}

func start(at int, pools map[string]int64, volumes map[string]Place) Operation {
	o := op(Start, "", 0, at, at+1, OK, "")
	o.Pools, o.Volumes = pools, volumes
	return o
}

func create(volume string, bytes int64, from, to int, pool string) Operation {
	return op(Create, volume, bytes, from, to, OK, pool)
}

func refused(volume string, bytes int64, from, to int) Operation {
	return op(Create, volume, bytes, from, to, Refused, "")
}

func lost(kind Kind, volume string, bytes int64, from int) Operation {
	return op(kind, volume, bytes, from, 0, Unknown, "")
}

func remove(volume string, from, to int) Operation { return op(Delete, volume, 0, from, to, OK, "") }

func among(o Operation, pools ...string) Operation {
	o.Allowed = pools
	return o
}

func elsewhere(o Operation) Operation {
	o.Node = "other"
	return o
}

func TestCheck(t *testing.T) {
	one, two := map[string]int64{"a": 100}, map[string]int64{"a": 100, "b": 60}
	for name, tc := range map[string]struct {
		history  []Operation
		refusals int
		// wrong is a part of the error; empty: the history is legal.
		wrong string
	}{
		"empty":    {},
		"in turn":  {history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), remove("v", 4, 5), create("w", 60, 6, 7, "a")}},
		"at once":  {history: []Operation{start(0, one, nil), create("w", 60, 2, 9, "a"), remove("v", 3, 8), create("v", 60, 4, 7, "a")}},
		"repeated": {history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), create("v", 60, 4, 5, "a"), create("v", 60, 6, 7, ""), remove("v", 8, 9), remove("v", 10, 11)}},
		"two pools, unnamed": {
			history: []Operation{start(0, two, nil), create("v", 60, 2, 3, ""), create("w", 100, 4, 5, "")},
		},
		"two nodes": {
			history: []Operation{start(0, one, nil), elsewhere(start(0, one, nil)), create("v", 60, 2, 3, "a"), elsewhere(create("w", 60, 2, 3, "a"))},
		},
		"double allocation": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), create("w", 60, 4, 5, "a")},
			wrong:   "n: after 2 of 3 operations, with {a: 40 bytes free}, this cannot come next: create w of 60 bytes: pool a (at 12:00:04.000, for 1s)",
		},
		"double allocation at once": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 5, "a"), create("w", 60, 3, 4, "a")},
			wrong:   "after 2 of 3 operations",
		},
		"double allocation, unnamed": {
			history: []Operation{start(0, two, nil), create("v", 60, 2, 3, ""), create("w", 60, 4, 5, ""), create("x", 60, 6, 7, "")},
			wrong:   "create x of 60 bytes: ok",
		},
		"room given back too late": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), create("w", 60, 4, 5, "a"), remove("v", 6, 7)},
			wrong:   "create w",
		},
		"in two pools": {
			history: []Operation{start(0, two, nil), create("v", 60, 2, 3, "a"), create("v", 60, 4, 5, "b")},
			wrong:   "create v of 60 bytes: pool b",
		},
		"pools that are not allowed": {
			history: []Operation{start(0, two, nil), among(create("v", 60, 2, 3, ""), "b"), among(refused("w", 60, 4, 5), "b")}, refusals: 1,
		},
		"refusal beside room": {
			history: []Operation{start(0, two, nil), create("v", 60, 2, 3, "a"), refused("w", 60, 4, 5)}, refusals: 1,
			wrong: "create w of 60 bytes: refused",
		},
		"refusal beside room that may come": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), remove("v", 4, 7), refused("w", 60, 5, 6)}, refusals: 1,
		},
		"refusal of what is there": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), refused("v", 60, 4, 5)}, refusals: 1,
			wrong: "create v of 60 bytes: refused",
		},
		"refusal by overcommit": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), refused("w", 60, 4, 5)},
			wrong:   "with {a: 40 bytes free}, this cannot come next: create w of 60 bytes: refused",
		},
		"refusal by overcommit at once": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 7, "a"), refused("w", 60, 3, 6)},
			wrong:   "create w of 60 bytes: refused",
		},
		"refusals that are allowed": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), refused("w", 60, 4, 5), refused("w", 60, 6, 7)}, refusals: 1,
		},
		"more refusals than are allowed": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), refused("w", 60, 4, 5), refused("x", 60, 6, 7)}, refusals: 1,
			wrong: "with 1 refusals at most",
		},
		"lost return, made": {
			history: []Operation{start(0, one, nil), lost(Create, "v", 60, 2), refused("w", 60, 4, 5)}, refusals: 1,
		},
		"lost return, not made": {
			history: []Operation{start(0, one, nil), lost(Create, "v", 60, 2), create("w", 60, 4, 5, "a")},
		},
		"lost return, made and not made": {
			history: []Operation{start(0, one, nil), lost(Create, "v", 60, 2), create("v", 60, 4, 5, "a"), create("w", 60, 6, 7, "a")},
			wrong:   "create w of 60 bytes: pool a",
		},
		"lost deletion": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), lost(Delete, "v", 0, 4), create("w", 60, 6, 7, "a"), remove("v", 8, 9)},
		},
		"started again": {
			history: []Operation{start(0, one, nil), lost(Create, "v", 60, 2), start(4, one, map[string]Place{"v": {"a", 60}}), refused("w", 60, 6, 7)}, refusals: 1,
		},
		"started again without a volume": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), start(4, one, nil)},
			wrong:   "start with 1 pools and 0 volumes",
		},
		"overfull at the start": {
			history: []Operation{start(0, one, map[string]Place{"v": {"a", 60}, "w": {"a", 60}}), create("v", 60, 2, 3, "a")},
			wrong:   "start with 1 pools and 2 volumes, more than fit: a: -20 bytes free",
		},
		"full at the start": {
			history: []Operation{start(0, one, map[string]Place{"v": {"a", 60}, "w": {"a", 40}}), refused("x", 1, 2, 3)}, refusals: 1,
		},
		"in no pool at the start": {
			history: []Operation{start(0, one, map[string]Place{"v": {"b", 60}}), create("v", 60, 2, 3, "")},
			wrong:   "b: -60 bytes free",
		},
		"overfull when started again": {
			history: []Operation{start(0, one, nil), create("v", 60, 2, 3, "a"), start(4, map[string]int64{"a": 50}, map[string]Place{"v": {"a", 60}})},
			wrong:   "start with 1 pools and 1 volumes, more than fit: a: -10 bytes free",
		},
		"lost return after the next start": {
			history: []Operation{start(0, one, nil), lost(Create, "v", 60, 2), start(4, one, nil), refused("w", 60, 6, 7)}, refusals: 1,
			wrong: "create w of 60 bytes: refused",
		},
		"before the first start": {
			history: []Operation{create("v", 60, 0, 1, "a"), start(2, one, nil), create("w", 100, 4, 5, "a")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := Check(dir, "history", tc.history, Rules{Refusals: tc.refusals})
			if tc.wrong == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Fatalf("got error %v, want one with %q", err, tc.wrong)
			}
			page, err := os.ReadFile(filepath.Join(dir, "history.html"))
			if err != nil || !bytes.Contains(page, []byte("create v of 60 bytes")) {
				t.Errorf("the picture has %d bytes and error %v, want the operations in it", len(page), err)
			}
			file, err := os.Open(filepath.Join(dir, "history.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if got, err := Read(file); err != nil || !reflect.DeepEqual(got, tc.history) {
				t.Errorf("read %v with error %v, want %v", got, err, tc.history)
			}
		})
	}
}

// TestLargeHistory: a run of thousands of volumes is checked in little time, also where many calls
// go on at once and the last one is not legal.
func TestLargeHistory(t *testing.T) {
	const rounds, atOnce = 200, 6
	history := []Operation{start(0, map[string]int64{"a": atOnce, "b": atOnce}, nil)}
	name := func(round, i int) string { return string(rune('a'+i)) + "-" + time.Duration(round).String() }
	for round := range rounds {
		for i := range atOnce {
			history = append(history, create(name(round, i), 2, 10*round+2, 10*round+5, map[bool]string{true: "a", false: "b"}[i%2 == 0]))
			history = append(history, remove(name(round, i), 10*round+6, 10*round+9))
		}
	}
	began := time.Now()
	if err := Check(t.TempDir(), "history", history, Rules{}); err != nil {
		t.Error(err)
	}
	for i := range atOnce {
		history = append(history, create(name(rounds, i), 2, 10*rounds+2, 10*rounds+5, map[bool]string{true: "a", false: "b"}[i%2 == 0]))
	}
	history = append(history, refused("late", 2, 10*rounds+2, 10*rounds+5))
	if err := Check(t.TempDir(), "history", history, Rules{}); err == nil || !strings.Contains(err.Error(), "create late of 2 bytes: refused") {
		t.Errorf("got error %v, want the refusal", err)
	}
	t.Logf("checked %d operations twice in %v", len(history), time.Since(began))
}
