package verbs

import (
	"strings"
	"testing"

	"capacityv2.internal/scripts/cluster"
)

func TestRefuseSkips(t *testing.T) {
	const skipped = "--- SKIP: TestStory1 (0.00s)\n    --- SKIP: TestStory2/disks (0.00s)\nok  \tapi\t1s\n"
	for name, c := range map[string]struct {
		results string
		asked   cluster.Options
		refuse  bool
	}{
		"all run":                  {"ok  \tapi\t1s\n", cluster.Options{}, false},
		"skipped":                  {skipped, cluster.Options{}, true},
		"skipped in the full mode": {skipped, cluster.Options{Mode: "full"}, true},
		"without nodes, as asked":  {skipped, cluster.Options{Mode: "control-plane"}, false},
	} {
		err := refuseSkips(c.results, c.asked)
		if (err != nil) != c.refuse || c.refuse && !strings.Contains(err.Error(), "TestStory1, TestStory2/disks") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
