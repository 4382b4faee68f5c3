// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

// GatesFile is our list of feature gates.
const GatesFile = "feature-gates.yaml"

// Gate is one feature gate.
type Gate struct {
	Name    string `json:"name"`
	Stage   string `json:"stage"`   // Alpha, Beta or GA
	Since   string `json:"since"`   // minor version in which the stage began, such as "1.37"
	Default bool   `json:"default"` // its default in that stage
	Ours    bool   `json:"ours"`    // the series adds it
	Enabled bool   `json:"enabled"` // make up turns it on
	Reason  string `json:"why"`
}

// Gates are the content of [GatesFile].
type Gates struct {
	Gates []Gate `json:"gates"`
}

// Gates reads the file. It refuses one that enables nothing.
func (w Workspace) Gates() (g Gates, err error) {
	path := filepath.Join(w.Root, GatesFile)
	if err = files.ReadYAML(path, &g); err == nil && g.Enabled() == "" {
		err = fmt.Errorf("%s enables no gate", path)
	}
	if err != nil {
		err = run.Refuse(err.Error(), "a list of gates as its header describes", "git checkout -- "+path)
	}
	return g, err
}

// Enabled returns the gates that are turned on, in the form of the components' --feature-gates flag.
func (l Gates) Enabled() string {
	var on []string
	for _, g := range l.Gates {
		if g.Enabled {
			on = append(on, g.Name+"=true")
		}
	}
	return strings.Join(on, ",")
}

// Ours returns the names of the gates that the series adds.
func (l Gates) Ours() (names []string) {
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
func (l Gates) Check(ctx context.Context, tree gitrepo.Repo, base string) error {
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
		errs = append(errs, run.Refuse(found, expected, "edit "+GatesFile))
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
