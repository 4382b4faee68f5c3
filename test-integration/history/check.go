package history

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/anishathalye/porcupine"
)

// timeout is how long a check may take. That of a run with thousands of volumes takes seconds.
const timeout = time.Minute

// Rules are what a run promises.
type Rules struct {
	// Refusals is how many volumes may be sent to a node that has no room, each counted
	// once for a node.
	Refusals int
}

// Check returns an error if a history is not legal, or if it takes too long to find out. Then it
// leaves the history and a picture of it in files of a folder that begin with name.
func Check(dir, name string, operations []Operation, rules Rules) error {
	operations = started(operations)
	m := model(refusals(operations) <= rules.Refusals)
	all := events(operations)
	if porcupine.CheckOperationsTimeout(m, all, timeout) == porcupine.Ok {
		return nil
	}
	var err error
	result, info := porcupine.CheckOperationsVerbose(m, all, timeout) // slower
	switch result {
	case porcupine.Unknown:
		err = fmt.Errorf("the history of %d operations could not be checked in %v", len(operations), timeout)
	default:
		err = fmt.Errorf("the history of %d operations is not legal, with %d refusals at most:\n%s", len(operations), rules.Refusals, explain(m, all, info))
	}
	return errors.Join(err, keep(filepath.Join(dir, name), operations, m, info))
}

// Expect is [Check] in a test, which fails if the history is not legal, or if there is none. The files are in the folder $HISTORIES, or, if
// that is not set, those that go test keeps with -artifacts.
func Expect(t testing.TB, name string, operations []Operation, rules Rules) {
	t.Helper()
	if len(operations) == 0 {
		t.Errorf("%s: there is no record of what drivers were asked for", name)
	}
	dir := os.Getenv("HISTORIES")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	began := time.Now()
	if err := Check(dir, fileName(t.Name()+"-"+name), operations, rules); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	t.Logf("%s: checked the history of %d calls in %v", name, len(operations), time.Since(began).Round(time.Millisecond))
}

// fileName returns a name without what some systems do not take.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_') {
			return r
		}
		return '-'
	}, name)
}

// started leaves out what happened on a node before the first start of its driver that is known:
// nobody knows what it had.
func started(operations []Operation) []Operation {
	operations = slices.Clone(operations)
	slices.SortStableFunc(operations, func(a, b Operation) int { return a.Call.Compare(b.Call) })
	seen := map[string]bool{}
	return slices.DeleteFunc(operations, func(o Operation) bool {
		seen[o.Node] = seen[o.Node] || o.Kind == Start
		return !seen[o.Node]
	})
}

// refusals is how many volumes were refused, each once for a node.
func refusals(operations []Operation) int {
	refused := map[[2]string]bool{}
	for _, o := range operations {
		if o.Result == Refused {
			refused[[2]string{o.Node, o.Volume}] = true
		}
	}
	return len(refused)
}

// events returns the operations for the checker, in the order of started. Those whose end nobody saw may have
// an effect until the last one, or until the driver starts again. Those of which it is known have it at
// that moment. Each is in a line of the picture in which nothing else goes on. Their times count from the first one.
func events(operations []Operation) []porcupine.Operation {
	var first, last time.Time
	if len(operations) > 0 {
		first = operations[0].Call
	}
	for _, o := range operations {
		last = slices.MaxFunc([]time.Time{last, o.Call, o.Return}, time.Time.Compare)
	}
	busy := map[string][]time.Time{}
	all := make([]porcupine.Operation, 0, len(operations))
	for i, o := range operations {
		begin, end := o.Call, o.Return
		if !o.At.IsZero() {
			begin, end = o.At, o.At
		} else if end.IsZero() {
			end = last
			if again := slices.IndexFunc(operations[i:], func(s Operation) bool { return s.Kind == Start && s.Node == o.Node }); again > 0 {
				end = operations[i+again].Call.Add(-1)
			}
		}
		lines := busy[o.Node]
		line := slices.IndexFunc(lines, func(until time.Time) bool { return until.Before(begin) })
		if line < 0 {
			line = len(lines)
			lines = append(lines, end)
		}
		lines[line], busy[o.Node] = end, lines
		all = append(all, porcupine.Operation{ClientId: line, Input: o, Call: int64(begin.Sub(first)), Return: int64(end.Sub(first))})
	}
	return all
}

// explain says for each node that is not legal what is.
func explain(m porcupine.Model, all []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var lines []string
	parts, orders := partition(all), info.PartialLinearizations()
	for i, part := range parts {
		var longest []int
		for _, order := range orders[i] {
			if len(order) > len(longest) {
				longest = order
			}
		}
		if len(longest) == len(part) {
			continue
		}
		now := m.Init()
		for _, at := range longest {
			_, now = m.Step(now, part[at].Input, nil)
		}
		// The one that had to come next is the first that ended.
		var left []porcupine.Operation
		for at, o := range part {
			if !slices.Contains(longest, at) {
				left = append(left, o)
			}
		}
		next := slices.MinFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
		o := next.Input.(Operation)
		lines = append(lines, fmt.Sprintf("  %s: after %d of %d operations, with %s, this cannot come next: %s (at %s, for %v)", o.Node, len(longest), len(part),
			m.DescribeState(now), o, o.Call.Format("15:04:05.000"), o.Return.Sub(o.Call)))
	}
	return strings.Join(lines, "\n")
}

// keep writes the history and its picture.
func keep(path string, operations []Operation, m porcupine.Model, info porcupine.LinearizationInfo) error {
	file, err := os.Create(path + ".jsonl")
	if err != nil {
		return err
	}
	if err := errors.Join(Write(file, operations), file.Close(), porcupine.VisualizePath(m, info, path+".html")); err != nil {
		return err
	}
	return fmt.Errorf("see %s.html, and %s.jsonl", path, path)
}
