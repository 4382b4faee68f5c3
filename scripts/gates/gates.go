// Package gates reads feature-gates.yaml, and compares it with the patches and
// with the tree's own definition of the gates.
package gates

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/progress"
)

// Gate is one feature gate.
type Gate struct {
	Name       string   `json:"name"`
	Stage      string   `json:"stage"`   // Alpha, Beta or GA
	Since      string   `json:"since"`   // minor version in which the stage began, such as "1.37"
	Default    bool     `json:"default"` // its default in that stage
	Ours       bool     `json:"ours"`    // the series adds it
	Enabled    bool     `json:"enabled"` // make up turns it on
	Components []string `json:"components"`
	Why        string   `json:"why"`
}

// List is the content of feature-gates.yaml.
type List struct {
	Gates []Gate `json:"gates"`
}

// Read reads and checks the file at path.
func Read(path string) (List, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return List{}, err
	}
	var l List
	if err := yaml.UnmarshalStrict(b, &l); err != nil {
		return List{}, progress.Refuse(path+": "+err.Error(), "a list of gates as its header describes", "git checkout -- "+path)
	}
	return l, l.check(path)
}

var (
	gateName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	minor    = regexp.MustCompile(`^1\.\d+$`)
)

func (l List) check(path string) error {
	var errs []error
	bad := func(g Gate, found, expected string) {
		errs = append(errs, progress.Refuse(fmt.Sprintf("%s: gate %q: %s", path, g.Name, found), expected, "edit "+path))
	}
	seen := map[string]bool{}
	if len(l.Gates) == 0 {
		errs = append(errs, progress.Refuse(path+" lists no gate", "at least one", "git checkout -- "+path))
	}
	for _, g := range l.Gates {
		switch {
		case !gateName.MatchString(g.Name):
			bad(g, "not the name of a gate", "UpperCamelCase")
		case seen[g.Name]:
			bad(g, "listed twice", "once")
		}
		seen[g.Name] = true
		if !slices.Contains([]string{"Alpha", "Beta", "GA"}, g.Stage) {
			bad(g, fmt.Sprintf("stage %q", g.Stage), "Alpha, Beta or GA")
		}
		if !minor.MatchString(g.Since) {
			bad(g, fmt.Sprintf("since %q", g.Since), "a minor version such as \"1.37\", quoted")
		}
		if len(g.Components) == 0 {
			bad(g, "no components", "the components that read it")
		}
		if strings.TrimSpace(g.Why) == "" {
			bad(g, "no reason (why)", "one sentence")
		}
	}
	return errors.Join(errs...)
}

// Enabled returns the gates that are turned on, in the form of the components'
// --feature-gates flag.
func (l List) Enabled() string {
	var on []string
	for _, g := range l.Gates {
		if g.Enabled {
			on = append(on, g.Name+"=true")
		}
	}
	return strings.Join(on, ",")
}

// Ours returns the names of the gates that the series adds.
func (l List) Ours() []string {
	var names []string
	for _, g := range l.Gates {
		if g.Ours {
			names = append(names, g.Name)
		}
	}
	return names
}
