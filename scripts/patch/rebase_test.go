package patch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// TestRebaseRefuses: before anything is done, it looks at what is asked for and at what is not committed.
func TestRebaseRefuses(t *testing.T) {
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work"), Out: t.Output()}
	for path, content := range map[string]string{
		"patches/spec/project.yaml": "title: Spec\nmodule: example.org/spec\n",
		"scripts/pins/spec/go.mod":  "module x\n\nrequire example.org/spec v1.0.0\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := gitrepo.Open(root, nil).Git(t.Context(), "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ project, version, want string }{
		"no base":         {"spec", "", "make rebase BASE=v1.0.0"},
		"no such project": {"spce", "v1.1.0", "unknown project"},
		"not committed":   {"spec", "v1.1.0", "that are not committed"},
	} {
		if err := rebase(t.Context(), ws, c.project, c.version, false); !run.IsRefusal(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a refusal that holds %q", name, err, c.want)
		}
	}
}
