// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	gomodule "golang.org/x/mod/module"

	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

const h1 = "h1:LTUzSbp9n0W7649oVKBYfC48zcoD3vCk++1PZQn28q8="

var kubernetesModule = gomodule.Version{Path: "k8s.io/kubernetes", Version: "v1.37.2"}

// sampleInputs is a release of two sources and of three programs that share a module.
func sampleInputs() inputs {
	shared := gomodule.Version{Path: "example.com/shared", Version: "v1.0.0+incompatible"}
	api := gomodule.Version{Path: "k8s.io/api"}
	patch := series.Patch{Name: "0001-a.patch", Bytes: []byte("x"), Subject: "storage: <a> & b", Trailers: map[string][]string{"Class": {"feature"}}}
	return inputs{
		version: Version{"v1.37.2", 1},
		date:    date,
		sources: []source{
			{
				project: workspace.Project{Name: workspace.ExternalProvisioner, Module: "github.com/kubernetes-csi/external-provisioner/v6"},
				stamp:   Stamp{Project: workspace.ExternalProvisioner, Version: Version{"v6.4.0", 1}, Commit: "5555"},
				base:    modules{{Path: "github.com/kubernetes-csi/external-provisioner/v6", Version: "v6.4.0"}: h1}, baseTree: "4444", tree: "6666",
				patches: []series.Patch{patch},
			},
			{
				project: workspace.Project{Name: workspace.Kubernetes, Module: "k8s.io/kubernetes"},
				stamp:   Stamp{Project: workspace.Kubernetes, Version: Version{"v1.37.2", 1}, Commit: "2222"},
				base:    modules{{Path: "k8s.io/api", Version: "v0.37.2"}: h1, kubernetesModule: h1}, baseTree: "1111", tree: "3333",
				patches: []series.Patch{patch},
			},
		},
		programs: []program{
			{"csi-provisioner", "dd", workspace.ExternalProvisioner, []string{workspace.Kubernetes}, modules{shared: h1, api: ""}},
			{"kubectl", "aa", workspace.Kubernetes, nil, modules{shared: h1, api: ""}},
			{"kubelet", "bb", workspace.Kubernetes, nil, modules{shared: h1}},
		},
		goVersion: "go1.26.8",
	}
}

// TestSBOMOfCheckout: a base that is a git checkout (KUBERNETES_SRC) was assembled from nothing.
func TestSBOMOfCheckout(t *testing.T) {
	in := sampleInputs()
	in.sources[1].base = nil
	b, err := sbom(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(b), "assembled from the Go modules below"); got != 1 || !strings.Contains(string(b), "git checkout of the tag; git tree 1111") {
		t.Errorf("%d bases from modules, want one, and one from a checkout: %s", got, b)
	}
}

func TestSBOMListsPatchesAndModules(t *testing.T) {
	b, err := sbom(sampleInputs())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	known := map[common.ElementID]bool{"DOCUMENT": true}
	var packages []string
	for _, p := range doc.Packages {
		if known[p.PackageSPDXIdentifier] {
			t.Errorf("two elements %s", p.PackageSPDXIdentifier)
		}
		known[p.PackageSPDXIdentifier] = true
		packages = append(packages, p.PackageName+"@"+p.PackageVersion)
	}
	want := "external-provisioner@v6.4.0+capacityv2.1 external-provisioner@v6.4.0 kubernetes@v1.37.2+capacityv2.1 kubernetes@v1.37.2" +
		" example.com/shared@v1.0.0+incompatible github.com/kubernetes-csi/external-provisioner/v6@v6.4.0 k8s.io/api@v0.37.2 k8s.io/kubernetes@v1.37.2" +
		" csi-provisioner@v6.4.0+capacityv2.1 kubectl@v1.37.2+capacityv2.1 kubelet@v1.37.2+capacityv2.1"
	if got := strings.Join(packages, " "); got != want {
		t.Errorf("packages %s,\nwant %s", got, want)
	}
	var files []string
	for _, patch := range doc.Files {
		known[patch.FileSPDXIdentifier] = true
		files = append(files, patch.FileName)
		sums := map[common.ChecksumAlgorithm]string{}
		for _, c := range patch.Checksums {
			sums[c.Algorithm] = c.Value
		}
		if sums[common.SHA256] != sampleInputs().sources[0].patches[0].SHA256() || len(sums[common.SHA1]) != 40 {
			t.Errorf("sums of the patch: %v", sums)
		}
		if patch.FileComment != "storage: <a> & b (Class: feature)" {
			t.Errorf("comment %q", patch.FileComment)
		}
	}
	if got := strings.Join(files, " "); got != "./patches/external-provisioner/0001-a.patch ./patches/kubernetes/0001-a.patch" {
		t.Errorf("files %s", got)
	}
	related := map[string]bool{}
	for _, r := range doc.Relationships {
		related[fmt.Sprintf("%s %s %s", r.RefA.ElementRefID, r.Relationship, r.RefB.ElementRefID)] = true
		for _, e := range []common.ElementID{r.RefA.ElementRefID, r.RefB.ElementRefID} {
			if !known[e] {
				t.Errorf("relationship %s names the unknown element %q", r.Relationship, e)
			}
		}
	}
	for _, want := range []string{
		"patch-kubernetes-0001-a.patch PATCH_APPLIED source-kubernetes",
		"patch-external-provisioner-0001-a.patch PATCH_APPLIED source-external-provisioner",
		"patch-external-provisioner-0001-a.patch PATCH_FOR base-external-provisioner",
		"source-external-provisioner DESCENDANT_OF base-external-provisioner",
		"base-external-provisioner GENERATED_FROM module-github.com-kubernetes-csi-external-provisioner-v6-v6.4.0",
		"base-kubernetes GENERATED_FROM module-k8s.io-api-v0.37.2",
		"program-" + tag + "-kubelet GENERATED_FROM source-kubernetes",
		"program-" + tag + "-csi-provisioner GENERATED_FROM source-external-provisioner",
		"program-" + tag + "-csi-provisioner STATIC_LINK source-kubernetes",
		"program-" + tag + "-csi-provisioner STATIC_LINK module-example.com-shared-v1.0.0-incompatible",
	} {
		if !related[want] {
			t.Errorf("no relationship %s in\n%s", want, strings.Join(sortedKeys(related), "\n"))
		}
	}
	if len(related) != 18 {
		t.Errorf("%d relationships:\n%s", len(related), strings.Join(sortedKeys(related), "\n"))
	}
	if doc.DocumentNamespace != "https://spdx.org/spdxdocs/kubernetes-v1.37.2+capacityv2.1-5555-2222" {
		t.Errorf("name %s", doc.DocumentNamespace)
	}
	if strings.Contains(string(b), h1) == false || !strings.Contains(string(b), "pkg:golang/example.com/shared@v1.0.0%2Bincompatible") {
		t.Error("a module lacks its sum or its package URL")
	}
}

func TestRepository(t *testing.T) {
	for module, want := range map[string]string{
		"k8s.io/kubernetes": "github.com/kubernetes/kubernetes",
		"github.com/kubernetes-csi/external-provisioner/v6": "github.com/kubernetes-csi/external-provisioner",
		"github.com/container-storage-interface/spec":       "github.com/container-storage-interface/spec",
	} {
		if got := repository(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}

// A program from a tree with a vendor folder has modules without sums, another one
// the same modules with sums: one element each.
func TestAddTakesTheSum(t *testing.T) {
	with, without := gomodule.Version{Path: "a", Version: "v1.0.0"}, gomodule.Version{Path: "a", Version: "v1.1.0"}
	for _, lists := range [][]modules{{{with: "", without: ""}, {with: h1}}, {{with: h1}, {with: "", without: ""}}} {
		got := modules{}
		for _, l := range lists {
			got.add(l)
		}
		if want := (modules{with: h1, without: ""}); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
