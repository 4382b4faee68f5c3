package release

import (
	"path/filepath"
	"testing"

	"capacityv2.internal/scripts/workspace"
)

func TestTable(t *testing.T) {
	ws := workspace.Workspace{Root: t.TempDir()}
	addProject(t, ws, "csi-spec", "github.com/container-storage-interface/spec", "v1.13.0")
	p := addProject(t, ws, workspace.Kubernetes, "k8s.io/kubernetes", "v1.37.2")
	const head = "| release | The kubernetes | The csi-spec |\n| --- | --- | --- |\n"
	const first, second = "| v1.37.2+capacityv2.1 | v1.37.2 | v1.13.0 |\n", "| v1.37.2+capacityv2.2 | v1.37.2 | v1.13.0 |\n"
	var table string
	for _, c := range []struct{ revision, want string }{{"1", head + first}, {"1", head + first}, {"2", head + second + first}} {
		write(t, filepath.Join(filepath.Dir(p.Series()), "REVISION"), c.revision)
		var err error
		if table, err = Table(ws, "# Changes\n"+table); err != nil || table != c.want {
			t.Errorf("revision %s: got %s, %v, want %s", c.revision, table, err, c.want)
		}
	}
}
