package suites

import (
	"fmt"
	"io"
	"strings"
	"time"

	"capacityv2.internal/scripts/toolchain"
)

// head starts the report.
const head = `# Upstream's own suites

Written by ` + "`make upstream-suites`" + `: upstream's integration suites that see the scheduler, volumes or the
types of group storage, with the feature gate off and on, on the series as it is here. Subtests count as tests.
Times are those of the tests alone, on %s.

| suite in ` + "`test/integration`" + ` | gate | tests | passed | failed | skipped | time |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
`

// WriteReport writes the report on rows, in their order, and on the suites that have
// not run, for a machine that is described in a few words.
func WriteReport(w io.Writer, machine string, rows []Row, missing []Suite) error {
	var b strings.Builder
	fmt.Fprintf(&b, head, machine)
	var upstream, regressions []string
	for _, row := range rows {
		line := func(gate string, r toolchain.TestResult) {
			fmt.Fprintf(&b, "| `%s` | %s | %d | %d | %d | %d | %s |\n", row.Suite.Folder, gate, len(r.Tests), r.Count(toolchain.Passed),
				r.Count(toolchain.Failed)+r.Count(toolchain.Unfinished), r.Count(toolchain.Skipped), r.Took.Round(time.Second))
		}
		line("off", row.Off)
		line("on", row.On)
		for _, name := range row.Off.Failures() {
			upstream = append(upstream, row.test(name))
		}
		for _, name := range row.Regressions() {
			regressions = append(regressions, row.test(name))
		}
	}
	list(&b, "Fails with the gate on only", regressions)
	list(&b, "Fails with the gate off, too", upstream)
	var folders []string
	for _, s := range missing {
		folders = append(folders, "`"+s.Folder+"`")
	}
	list(&b, "Not run on this series", folders)
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
