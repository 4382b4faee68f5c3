package suites

import (
	_ "embed"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/progress"
)

// Upstream is a package of upstream's integration tests.
type Upstream struct {
	// Folder is that of the package, below test/integration.
	Folder string
	// AtLeast is how many tests have to pass: a pattern that matches none passes as well.
	AtLeast int
	// Args are further arguments of go test.
	Args []string
	// Alone is set if it cannot run with the gate off and on at the same time.
	Alone bool
}

func (s Upstream) pkg() string { return "./test/integration/" + s.Folder }

// Quick are those of every change: volume scheduling, and the queueing hints of the plugin.
var Quick = []Upstream{
	{Folder: "volumescheduling", AtLeast: 40},
	{Folder: "scheduler/queueing", AtLeast: 16, Args: []string{"-run", "^(TestCoreResourceEnqueue|" + gateIsOn + ")$/^VolumeBinding$"}},
}

//go:embed upstream.yaml
var upstream []byte

// SelectUpstream returns the suites whose folder matches. None is an error.
func SelectUpstream(folder *regexp.Regexp) ([]Upstream, error) {
	var suites, selected []Upstream
	if err := yaml.UnmarshalStrict(upstream, &suites); err != nil {
		return nil, err
	}
	var folders []string
	for _, s := range suites {
		folders = append(folders, s.Folder)
		if folder.MatchString(s.Folder) {
			selected = append(selected, s)
		}
	}
	if len(selected) == 0 {
		return nil, progress.Refuse("no suite of upstream's matches "+folder.String(), "one of: "+strings.Join(folders, ", "),
			"make nightly ONLY=upstream-suites SUITE=scheduler/")
	}
	return selected, nil
}
