// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

func commitAll(t *testing.T, dir string) {
	t.Helper()
	testtree.Commit(t, gitrepo.Open(dir, nil), "all", nil)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	testtree.Write(t, "", map[string]string{path: content})
}

func project(t *testing.T, ws workspace.Workspace, name string) workspace.Project {
	t.Helper()
	p, err := ws.Project(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// addProject writes what the repository has of a project without patches.
func addProject(t *testing.T, ws workspace.Workspace, name, module, version string) workspace.Project {
	t.Helper()
	write(t, filepath.Join(ws.Root, "patches", name, workspace.ProjectFile), "title: The "+name+"\nmodule: "+module+"\n")
	p := project(t, ws, name)
	write(t, filepath.Join(p.Series(), "series"), "")
	write(t, filepath.Join(p.Pin(), "go.mod"), "module pin\n\ngo 1.26.0\n\nrequire "+module+" "+version+"\n")
	write(t, filepath.Join(p.Pin(), "go.sum"), module+" "+version+" "+h1+"\n")
	return p
}

// commitTree makes the tree of p a base of one commit, with a go.work of its own.
func commitTree(t *testing.T, p workspace.Project, work string) {
	t.Helper()
	commitAll(t, p.Tree())
	err := p.Repo(nil).GitAll(t.Context(), []string{"update-ref", base.Ref, "HEAD"}, []string{"config", "capacityv2.base", "v1.37.2 from modules"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.Tree(), ".git/info/exclude"), "/go.work\n/go.work.sum\n")
	if work != "" {
		write(t, filepath.Join(p.Tree(), "go.work"), work)
	}
}

// fakeWorkspace is a checkout with trees of upstream's programs that print
// their version and do nothing else.
func fakeWorkspace(t *testing.T) workspace.Workspace {
	t.Helper()
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
	write(t, filepath.Join(root, workspace.GatesFile), "gates: []\n")
	addKubernetes(t, ws)

	spec := addProject(t, ws, "csi-spec", "github.com/container-storage-interface/spec", "v1.13.0")
	write(t, filepath.Join(spec.Tree(), "go.mod"), "module "+spec.Module+"\n\ngo 1.26.0\n")
	write(t, filepath.Join(spec.Tree(), "lib/go/csi/csi.go"), "package csi\n\nfunc Pools() string { return \"pools\" }\n")
	write(t, filepath.Join(spec.Tree(), "LICENSE"), "Apache-2.0\n")
	commitTree(t, spec, "go 1.26.0\n\nuse .\n")

	p := addProject(t, ws, workspace.ExternalProvisioner, "github.com/kubernetes-csi/external-provisioner/v6", "v6.4.0")
	write(t, filepath.Join(p.Series(), "series"), "0001-a.patch\n")
	write(t, filepath.Join(p.Series(), "0001-a.patch"), "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.com>\nSubject: [PATCH] a\n\nClass: test\n---\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
	testtree.Write(t, p.Tree(), map[string]string{
		"go.mod": "module " + p.Module + "\n\ngo 1.26.0\n", "LICENSE": "Apache-2.0\n",
		"cmd/csi-provisioner/main.go": `package main

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	_ "k8s.io/component-base/version"
)

var version = "unknown"

func main() { println(version, csi.Pools()) }
`,
		"Makefile": "CMDS=csi-provisioner\n", "release-tools/build.make": "IMPORTPATH_LDFLAGS = -X main.version=$(REV)\n",
		"Dockerfile": "ENTRYPOINT [\"/csi-provisioner\"]\n",
	})
	commitTree(t, p, "go 1.26.0\n\nuse (\n\t.\n\t../csi-spec\n\t../kubernetes/staging/src/k8s.io/component-base\n)\n")
	return ws
}

func addKubernetes(t *testing.T, ws workspace.Workspace) {
	t.Helper()
	p := addProject(t, ws, workspace.Kubernetes, "k8s.io/kubernetes", "v1.37.2")
	write(t, ws.Revision(), "1\n")
	tree := p.Tree()
	const stage = "staging/src/k8s.io/component-base"
	write(t, filepath.Join(tree, "go.work"), "go 1.26.0\n\nuse (\n\t.\n\t./"+stage+"\n\t./staging/src/k8s.io/kube-aggregator\n\t./staging/src/k8s.io/apiextensions-apiserver\n)\n")
	write(t, filepath.Join(tree, "go.mod"), "module k8s.io/kubernetes\n\ngo 1.26.0\n")
	for _, m := range []string{"component-base", "kube-aggregator", "apiextensions-apiserver"} {
		write(t, filepath.Join(tree, "staging/src/k8s.io", m, "go.mod"), "module k8s.io/"+m+"\n\ngo 1.26.0\n")
		write(t, filepath.Join(tree, "staging/src/k8s.io", m, "LICENSE"), "Apache-2.0\n")
	}
	write(t, filepath.Join(tree, stage, "version/version.go"), "package version\n\nvar gitVersion = \"none\"\n\nfunc Get() string { return gitVersion }\n")
	for _, p := range slices.Concat(serverTargets, clientTargets) {
		write(t, filepath.Join(tree, p, "main.go"), "package main\n\nimport \"k8s.io/component-base/version\"\n\nfunc main() { println(version.Get(), \""+path.Base(p)+"\") }\n")
	}
	write(t, filepath.Join(tree, "cmd/kubeadm/main.go"), `package main

import "fmt"

func main() {
	fmt.Println("registry.k8s.io/kube-apiserver:v1.37.2_capacityv2.1\nregistry.k8s.io/kube-proxy:v1.37.2_capacityv2.1\nregistry.k8s.io/pause:3.10")
}
`)
	write(t, filepath.Join(tree, "hack/lib/init.sh"), fmt.Sprintf("KUBE_CLIENT_TARGETS=(%s)\nKUBE_NODE_TARGETS=(%s)\nKUBE_SERVER_TARGETS=(%s)\n",
		strings.Join(clientTargets, " "), strings.Join(nodeTargets, " "), strings.Join(serverTargets, " ")))
	write(t, filepath.Join(tree, "LICENSES/LICENSE"), "Apache-2.0\n")
	commitTree(t, p, "")
}

// readTarGz calls f for each member of a tarball.
func readTarGz(path string, f func(*tar.Header, io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	return eachMember(z, f)
}

// eachMember calls f for each member of a tarball, until one fails.
func eachMember(r io.Reader, f func(*tar.Header, io.Reader) error) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(h, in); err != nil {
			return err
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
