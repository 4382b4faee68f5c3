// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestRebaseRefuses: before anything is done, it looks at what is asked for and at what is not committed.
func TestRebaseRefuses(t *testing.T) {
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work"), Out: t.Output()}
	testtree.Write(t, root, map[string]string{
		"patches/spec/project.yaml": "title: Spec\nmodule: example.org/spec\n",
		"scripts/pins/spec/go.mod":  "module x\n\nrequire example.org/spec v1.0.0\n",
	})
	if err := gitrepo.Open(root, nil).Git(t.Context(), "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	proxy := filepath.Join(root, "proxy", "example.org", "spec", "@v")
	served := ""
	for _, version := range []string{"v0.9.0", "v1.0.0", "v1.1.0", "v1.2.0-rc.1"} {
		served += version + "\n"
		testtree.Write(t, proxy, map[string]string{"list": served, version + ".info": `{"Version":"` + version + `"}`, version + ".mod": "module example.org/spec\n"})
	}
	t.Setenv("GOPROXY", "file://"+filepath.Join(root, "proxy"))
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", filepath.Join(root, "cache"))
	t.Setenv("GOFLAGS", "-modcacherw")
	for name, c := range map[string]struct {
		project, version string
		forecast         bool
		want             []string
	}{
		"no base":         {"spec", "", false, []string{"no BASE to move Spec to", "after v1.0.0, those are v1.1.0, v1.2.0-rc.1\n", "make rebase BASE=v1.2.0-rc.1 PROJECT=spec FORECAST=1"}},
		"no base to try":  {"spec", "", true, []string{"no BASE to move Spec to"}},
		"no such base":    {"spec", "v1.3.0", true, []string{"Spec v1.3.0 does not exist", "after v1.0.0, those are v1.1.0, v1.2.0-rc.1\n"}},
		"no such project": {"spce", "v1.1.0", false, []string{"unknown project"}},
		"not committed":   {"spec", "v1.1.0", false, []string{"that are not committed"}},
	} {
		err := rebase(t.Context(), ws, c.project, c.version, c.forecast)
		for _, want := range c.want {
			if !run.IsRefusal(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want a refusal that holds %q", name, err, want)
			}
		}
	}
}
