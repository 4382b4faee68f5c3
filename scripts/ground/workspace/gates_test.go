// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
)

const gateList = `gates:
- {name: CSIStorageCapacityV2, stage: Alpha, since: "1.37", default: false, ours: true, enabled: true, why: a test}
- {name: Other, stage: Beta, since: "1.36", default: true, ours: false, enabled: false, why: a test}
`

func readGates(t *testing.T, content string) (Gates, error) {
	t.Helper()
	root := t.TempDir()
	testtree.Write(t, root, map[string]string{GatesFile: content})
	return Workspace{Root: root}.Gates()
}

func TestGates(t *testing.T) {
	l, err := readGates(t, gateList)
	if got, want := l.Enabled(), "CSIStorageCapacityV2=true"; err != nil || got != want {
		t.Errorf("Enabled() = %q, want %q; error %v", got, want, err)
	}
	for name, content := range map[string]string{"unknown key": strings.Replace(gateList, "why:", "because:", 1), "no gates": "gates: []\n"} {
		if _, err := readGates(t, content); !run.IsRefusal(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

const stock = `- name: Other
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.30"}
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.36"}
- name: Foreign
  versionedSpecs:
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.30"}
`

const added = `- name: CSIStorageCapacityV2
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.37"}
`

func TestCheckGates(t *testing.T) {
	for name, c := range map[string]struct{ list, tree, want string }{
		"as listed":       {gateList, stock + added, ""},
		"another default": {gateList, stock + strings.Replace(added, "default: false", "default: true", 1), "CSIStorageCapacityV2: Alpha since 1.37, default false"},
		"another stage":   {gateList, strings.Replace(stock, "Beta", "GA", 1) + added, "GA since 1.36, default true"},
		"another version": {gateList, strings.Replace(stock, `"1.36"`, `"1.35"`, 1) + added, "Beta since 1.35, default true"},
		"a gate too many": {gateList, stock + added + strings.Replace(added, "CSI", "Extra", 1), "lacks ExtraStorageCapacityV2"},
		"a gate too few":  {gateList, stock, "that CSIStorageCapacityV2 is ours: true"},
		"not ours":        {strings.Replace(gateList, "ours: false", "ours: true", 1), stock + added, "that Other is ours: true"},
		"ours":            {strings.Replace(gateList, "ours: true", "ours: false", 1), stock + added, "that CSIStorageCapacityV2 is ours: false"},
		"no gate":         {strings.Replace(gateList, "Other", "Unknown", 1), stock + added, "that Unknown is ours: false"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := readGates(t, c.list)
			if err != nil {
				t.Fatal(err)
			}
			repo := gitrepo.Open(t.TempDir(), nil)
			for _, step := range []struct{ content, rev string }{{stock, "base"}, {c.tree, "series"}} {
				testtree.Commit(t, repo, "x", map[string]string{known: step.content})
				if err := repo.Git(t.Context(), "tag", step.rev); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Check(t.Context(), repo, "base"); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
