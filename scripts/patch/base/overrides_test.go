// SPDX-License-Identifier: Apache-2.0

package base

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

func TestWriteOverrides(t *testing.T) {
	ws := workspace.Workspace{Root: t.TempDir()}
	ws.Work = filepath.Join(ws.Root, "_work")
	testtree.Write(t, ws.Root, map[string]string{
		"patches/csi-spec/project.yaml":   "title: CSI spec\nmodule: example.com/spec\nlibrary: true\n",
		"patches/kubernetes/project.yaml": "title: Kubernetes\nmodule: k8s.io/kubernetes\nstaging: true\n",
		"patches/sidecar/project.yaml":    "title: Sidecar\nmodule: example.com/sidecar\n",
		"_work/kubernetes/go.work":        "go 1.26.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n)\n",
	})
	projects, err := ws.Projects()
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteOverrides(ws.Overrides(), projects); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(ws.Overrides())
	want := "replace (\n\texample.com/spec => W/csi-spec\n\tk8s.io/kubernetes => W/kubernetes\n\tk8s.io/api => W/kubernetes/staging/src/k8s.io/api\n)\n"
	if want = strings.ReplaceAll(want, "W/", ws.Work+"/"); err != nil || string(got) != want {
		t.Errorf("got %s, error %v, want %s", got, err, want)
	}
}
