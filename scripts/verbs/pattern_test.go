package verbs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/run"
)

func TestPatternFlag(t *testing.T) {
	for text, want := range map[string]string{"a|b": "a|b", "": "<nil>", "(": "refused"} {
		var p *regexp.Regexp
		c := &cobra.Command{}
		patternFlag(c, &p, "only", "what matches")
		err := c.ParseFlags([]string{"--only=" + text})
		got := "<nil>"
		if p != nil {
			got = p.String()
		}
		if err != nil {
			got = "refused"
			if !run.IsRefusal(err) || !strings.Contains(err.Error(), "--only") {
				t.Errorf("%q: %v", text, err)
			}
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
