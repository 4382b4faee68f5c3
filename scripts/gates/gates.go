// Package gates reads feature-gates.yaml, and compares it with the gates of the tree.
package gates

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
)

// Gate is one feature gate.
type Gate struct {
	Name    string `json:"name"`
	Stage   string `json:"stage"`   // Alpha, Beta or GA
	Since   string `json:"since"`   // minor version in which the stage began, such as "1.37"
	Default bool   `json:"default"` // its default in that stage
	Ours    bool   `json:"ours"`    // the series adds it
	Enabled bool   `json:"enabled"` // make up turns it on
	Why     string `json:"why"`
}

// List is the content of feature-gates.yaml.
type List struct {
	Gates []Gate `json:"gates"`
}

// Read reads the file at path.
func Read(path string) (l List, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	if err = yaml.UnmarshalStrict(b, &l); err != nil || l.Enabled() == "" {
		return l, progress.Refuse(fmt.Sprintf("%s enables %q, error: %v", path, l.Enabled(), err), "a list of gates as its header describes", "git checkout -- "+path)
	}
	return l, nil
}

// Enabled returns the gates that are turned on, in the form of the components' --feature-gates flag.
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
func (l List) Ours() (names []string) {
	for _, g := range l.Gates {
		if g.Ours {
			names = append(names, g.Name)
		}
	}
	return names
}

// known is upstream's list of all gates. It is generated from the code of the components.
const known = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"

// readKnown returns the newest stage of each gate at a commit.
func readKnown(ctx context.Context, tree gitrepo.Repo, commit string) (map[string]Gate, error) {
	text, err := tree.Output(ctx, "show", commit+":"+known)
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name  string `json:"name"`
		Specs []struct {
			Default bool   `json:"default"`
			Stage   string `json:"preRelease"`
			Version string `json:"version"`
		} `json:"versionedSpecs"`
	}
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("%s: %w", known, err)
	}
	gates := map[string]Gate{}
	for _, g := range list {
		if n := len(g.Specs); n > 0 {
			gates[g.Name] = Gate{Name: g.Name, Stage: g.Specs[n-1].Stage, Since: g.Specs[n-1].Version, Default: g.Specs[n-1].Default}
		}
	}
	return gates, nil
}

// Check compares the list with the gates of the tree at HEAD, and those of ours with what it has beyond the base.
func (l List) Check(ctx context.Context, tree gitrepo.Repo, base string) error {
	before, err := readKnown(ctx, tree, base)
	if err != nil {
		return err
	}
	after, err := readKnown(ctx, tree, "HEAD")
	if err != nil {
		return err
	}
	var errs []error
	bad := func(found, expected string) {
		errs = append(errs, progress.Refuse(found, expected, "edit feature-gates.yaml"))
	}
	for _, g := range l.Gates {
		got, ok := after[g.Name]
		_, stock := before[g.Name]
		switch {
		case !ok || stock == g.Ours:
			bad(fmt.Sprintf("feature-gates.yaml says that %s is ours: %t", g.Name, g.Ours), fmt.Sprintf("a gate of %s, in the base: %t, after the series: %t", known, stock, ok))
		case g.Stage != got.Stage || g.Since != got.Since || g.Default != got.Default:
			bad(fmt.Sprintf("feature-gates.yaml says of %s: %s since %s, default %t", g.Name, g.Stage, g.Since, g.Default),
				fmt.Sprintf("%s since %s, default %t (%s)", got.Stage, got.Since, got.Default, known))
		}
	}
	for name := range after {
		if _, stock := before[name]; !stock && !slices.Contains(l.Ours(), name) {
			bad("feature-gates.yaml lacks "+name+", a gate that the series adds", "every gate of the series, with ours: true")
		}
	}
	return errors.Join(errs...)
}
