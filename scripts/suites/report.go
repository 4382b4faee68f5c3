package suites

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// head starts the report.
const head = `# Upstream's own suites

Written by ` + "`make upstream-suites`" + `: upstream's integration suites that see the scheduler, volumes or the
types of group storage, with the feature gate off and on. Subtests count as tests. Each row
names the tree that it ran on, by the beginning of its hash: the newest one was ` + "`%.10s`" + `.
` + "`appliedTree`" + ` in ` + "`patches/kubernetes/tree.lock`" + ` is that of the series as it is here. Times leave out compiling; two suites run side by side, nearly all with both
gates at once, on %s.

| suite in ` + "`test/integration`" + ` | gate | tests | passed | failed | skipped | time | tree |
| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |
`

// WriteReport writes the report on the rows of all suites, for a machine that is
// described in a few words. tree is that of the series as it is now.
func WriteReport(w io.Writer, machine, tree string, rows map[string]Row) error {
	var b strings.Builder
	fmt.Fprintf(&b, head, tree, machine)
	var worse, upstream, older, missing []string
	for _, suite := range All {
		row, ok := rows[suite.Folder]
		if !ok {
			missing = append(missing, "`"+suite.Folder+"`")
			continue
		}
		line := func(gate string, c Counts) {
			took := time.Duration(c.Seconds) * time.Second
			fmt.Fprintf(&b, "| `%s` | %s | %d | %d | %d | %d | %s | `%.10s` |\n", row.Folder, gate, c.Tests, c.Passed, c.Failed, c.Skipped, took, row.Tree)
		}
		line("off", row.Off)
		line("on", row.On)
		if row.Tree != tree {
			older = append(older, "`"+suite.Folder+"`")
		}
		worse, upstream = append(worse, row.Worse...), append(upstream, row.Upstream...)
	}
	list(&b, "Fails with the gate on only", worse)
	list(&b, "Fails with the gate off, too", upstream)
	list(&b, "Ran on an earlier series", older)
	list(&b, "Not run yet", missing)
	_, err := io.WriteString(w, b.String())
	return err
}

func list(b *strings.Builder, title string, names []string) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	if len(names) == 0 {
		b.WriteString("None.\n")
	}
	for _, n := range names {
		fmt.Fprintf(b, "- %s\n", n)
	}
}
