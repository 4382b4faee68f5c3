package gates

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"capacityv2.internal/scripts/progress"
)

// declaration is a gate's constant, in whatever package of the tree.
var declaration = regexp.MustCompile(`^\s*([A-Z]\w+)\s+featuregate\.Feature = "([A-Z]\w+)"`)

// CheckPatches compares the gates that the files of a series declare with those
// of ours in the list. It needs no source tree.
func (l List) CheckPatches(files []*gitdiff.File) error {
	added := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.NewName, ".go") {
			continue
		}
		for _, frag := range f.TextFragments {
			for _, line := range frag.Lines {
				m := declaration.FindStringSubmatch(line.Line)
				if m == nil || line.Op == gitdiff.OpContext {
					continue
				}
				if line.Op == gitdiff.OpAdd {
					added[m[2]] = true
				} else {
					delete(added, m[2])
				}
			}
		}
	}
	return l.checkOurs(added, "the patches")
}

// checkOurs compares the gates found in a place with those of ours.
func (l List) checkOurs(found map[string]bool, where string) error {
	var errs []error
	for name := range found {
		if !slices.Contains(l.Ours(), name) {
			errs = append(errs, progress.Refuse("feature-gates.yaml lacks "+name+", a gate that "+where+" add", "every gate of the series, with ours: true", "edit feature-gates.yaml"))
		}
	}
	for _, name := range l.Ours() {
		if !found[name] {
			errs = append(errs, progress.Refuse("feature-gates.yaml lists "+name+" as ours, but "+where+" do not add it", "a gate of the series", "edit feature-gates.yaml"))
		}
	}
	return errors.Join(errs...)
}
