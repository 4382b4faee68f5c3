package skew

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// page is written by make test LONG=1, between these lines.
const (
	page  = "../../docs/reference/skew.md"
	begin = "<!-- begin: written by make test LONG=1 -->\n"
	end   = "<!-- end -->\n"
)

// TestPage checks that docs/reference/skew.md has each combination and each step once, with what has to come out of it. It
// starts nothing.
func TestPage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok1 := strings.Cut(string(content), begin)
	written, _, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	}
	for _, problem := range checkTables(written) {
		t.Errorf("%s: %s; run make test LONG=1", page, problem)
	}
}

// checkTables returns what is wrong with the tables.
func checkTables(text string) []string {
	tables := strings.Split(text, "### ")
	if len(tables) != 6 || tables[0] != "" {
		return []string{"not five tables, each with a head"}
	}
	want := map[string]outcome{}
	for _, s := range matrix() {
		want[columns(s.writer, s.scheduler, s.provisioner, s.manager)] = expect(s)
	}
	problems := compare("one API server", want, rows(tables[1]), 3)

	want = map[string]outcome{}
	for _, s := range twoServers() {
		want[columns(s.writer, s.reader, s.scheduler)] = expect(s)
	}
	problems = append(problems, compare("two API servers", want, rows(tables[2]), -1)...)

	want = map[string]outcome{}
	for _, s := range emulations() {
		want[columns(s.writer, s.scheduler)] = expect(s)
	}
	problems = append(problems, compare("a scheduler that is emulated", want, rows(tables[3]), -1)...)

	steps := expectSteps(upgrade)
	if len(rows(tables[4])) != len(steps) {
		problems = append(problems, "the table of steps does not have one row for each")
	}
	for i, s := range steps {
		if row := s.row(i + 1); !strings.Contains(tables[4], row) {
			problems = append(problems, "the table of steps does not have: "+strings.TrimSpace(row))
		}
	}

	refused := tables[5]
	for _, r := range refusals("") {
		if strings.Count(refused, r.row()) != 1 {
			problems = append(problems, "not once: "+strings.TrimSpace(r.row()))
		}
	}
	if len(rows(refused)) != len(refusals("")) {
		problems = append(problems, "more programs that do not start than were tried")
	}
	return problems
}

// compare compares rows with what is wanted of the combinations in their first columns. The column
// with the number list has several kinds, each for a combination of its own; none has if it is -1.
func compare(table string, want map[string]outcome, got [][]string, list int) []string {
	var problems []string
	seen := map[string]int{}
	for _, row := range got {
		key := len(row) - 7 // those of an outcome
		if key < 1 {
			problems = append(problems, table+": "+strings.Join(row, ", ")+" is too short")
			continue
		}
		variants := []string{""}
		if list >= 0 {
			variants = strings.Split(row[list], ", ")
		}
		for _, v := range variants {
			one := slices.Clone(row[:key])
			if list >= 0 {
				one[list] = v
			}
			name := strings.Join(one, " | ")
			seen[name]++
			o, ok := want[name]
			if outcome := " " + strings.Join(row[key:], " | ") + " |"; !ok || outcome != o.row() {
				problems = append(problems, table+": "+name+" has "+outcome+", want "+o.row())
			}
		}
	}
	for name := range want {
		if seen[name] != 1 {
			problems = append(problems, table+": not once: "+name)
		}
	}
	return problems
}

func columns(kinds ...kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, " | ")
}

// rows returns the cells of a table, without its head.
func rows(table string) [][]string {
	var all [][]string
	for line := range strings.Lines(table) {
		if row, ok := strings.CutPrefix(strings.TrimSpace(line), "|"); ok {
			var cells []string
			for _, cell := range strings.Split(strings.TrimSuffix(row, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			all = append(all, cells)
		}
	}
	return all[min(2, len(all)):]
}

// TestCheckTables checks that tables that are not complete are noticed.
func TestCheckTables(t *testing.T) {
	r := record{outcomes: map[set]outcome{}}
	for _, s := range slices.Concat(matrix(), twoServers(), emulations()) {
		r.add(s, expect(s))
	}
	for i, s := range expectSteps(upgrade) {
		r.step(s.row(i + 1))
	}
	for _, one := range refusals("") {
		r.refuse(one.row())
	}
	if problems := checkTables(r.tables()); len(problems) > 0 {
		t.Errorf("complete tables have the problems %q", problems)
	}
	good, missing := r.tables(), set{writer: on, reader: on, scheduler: on, manager: stock, provisioner: on}
	delete(r.outcomes, missing)
	without := r.tables()
	other := expect(missing)
	other.apart = fails
	r.add(missing, other)
	for name, text := range map[string]string{
		"a combination is missing":      without,
		"a combination has another end": r.tables(),
		"a row is there twice":          strings.Replace(good, "| on | on | on | stock, off, on |", "| on | on | on | stock, off, on, on |", 1),
		"an outcome is missing":         strings.Replace(good, "| moves |", "|  |", 1),
		"a step is missing":             strings.Replace(good, expectSteps(upgrade)[1].row(2), "", 1),
		"a step has another end":        strings.Replace(good, "| true | false | pools | valid |", "| true | true | pools | valid |", 1),
		"a refusal is missing":          strings.Replace(good, refusals("")[0].row(), "", 1),
		"a table is missing":            good[:strings.Index(good, "### One after")],
	} {
		if text == good || len(checkTables(text)) == 0 {
			t.Errorf("%s, and there is no problem", name)
		}
	}
}
