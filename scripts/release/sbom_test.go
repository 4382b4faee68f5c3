package release

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"

	"capacityv2.internal/scripts/series"
)

const h1 = "h1:LTUzSbp9n0W7649oVKBYfC48zcoD3vCk++1PZQn28q8="

// sampleInputs is a release of two programs that share a module.
func sampleInputs() inputs {
	shared := module{"example.com/shared", "v1.0.0+incompatible", h1}
	return inputs{
		version:  Version{"v1.37.1", 1},
		date:     date,
		base:     []module{{"k8s.io/api", "v0.37.1", h1}, {"k8s.io/kubernetes", "v1.37.1", h1}},
		baseTree: "1111", commit: "2222", tree: "3333",
		patches: []series.Patch{{Name: "0001-a.patch", Bytes: []byte("x"), Subject: "storage: <a> & b", Trailers: map[string][]string{"Class": {"feature"}}}},
		programs: []program{
			{Artefact{"kubectl", "aa", 1}, "linux/amd64", []module{shared, {Path: "k8s.io/api"}}},
			{Artefact{"kubelet", "bb", 1}, "linux/amd64", []module{shared}},
		},
		platforms: []string{"linux/amd64"},
		goVersion: "go1.26.8",
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
	want := "kubernetes@v1.37.1+capacityv2.1 kubernetes@v1.37.1 example.com/shared@v1.0.0+incompatible k8s.io/api@v0.37.1 k8s.io/kubernetes@v1.37.1 kubectl@v1.37.1+capacityv2.1 kubelet@v1.37.1+capacityv2.1"
	if got := strings.Join(packages, " "); got != want {
		t.Errorf("packages %s,\nwant %s", got, want)
	}
	if len(doc.Files) != 1 {
		t.Fatalf("%d files, want one patch", len(doc.Files))
	}
	patch := doc.Files[0]
	known[patch.FileSPDXIdentifier] = true
	sums := map[common.ChecksumAlgorithm]string{}
	for _, c := range patch.Checksums {
		sums[c.Algorithm] = c.Value
	}
	if sums[common.SHA256] != sampleInputs().patches[0].SHA256() || len(sums[common.SHA1]) != 40 {
		t.Errorf("sums of the patch: %v", sums)
	}
	if patch.FileComment != "storage: <a> & b (Class: feature)" {
		t.Errorf("comment %q", patch.FileComment)
	}
	kinds := map[string]int{}
	for _, r := range doc.Relationships {
		kinds[r.Relationship]++
		for _, e := range []common.ElementID{r.RefA.ElementRefID, r.RefB.ElementRefID} {
			if !known[e] {
				t.Errorf("relationship %s names the unknown element %q", r.Relationship, e)
			}
		}
	}
	if kinds[common.TypeRelationshipPatchApplied] != 1 || kinds[common.TypeRelationshipStaticLink] != 2 || kinds[common.TypeRelationshipGeneratedFrom] != 4 {
		t.Errorf("relationships %v", kinds)
	}
	if strings.Contains(string(b), h1) == false || !strings.Contains(string(b), "pkg:golang/example.com/shared@v1.0.0%2Bincompatible") {
		t.Error("a module lacks its sum or its package URL")
	}
}

func TestProvenanceMaterials(t *testing.T) {
	b, err := newProvenance(sampleInputs(), "-s", []Artefact{{"x.tar.gz", "cc", 1}})
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 1 || s.Subject[0].Digest["sha256"] != "cc" || s.Predicate.RunDetails.Builder.ID != builder {
		t.Errorf("subject %v, builder %v", s.Subject, s.Predicate.RunDetails.Builder)
	}
	got := map[string]map[string]string{}
	for _, d := range s.Predicate.BuildDefinition.ResolvedDependencies {
		got[d.Name] = d.Digest
	}
	if len(got) != 6 {
		t.Errorf("materials %v, want three modules, base, source and a patch", sortedKeys(got))
	}
	for _, want := range []struct{ name, kind, value string }{
		{"k8s.io/kubernetes", "dirHash", "2d353349ba7d9f45bbeb8f6854a0587c2e3ccdca03def0a4fbed4f6509f6f2af"},
		{"example.com/shared", "dirHash", "2d353349ba7d9f45bbeb8f6854a0587c2e3ccdca03def0a4fbed4f6509f6f2af"},
		{"base", "gitTree", "1111"},
		{"source", "gitCommit", "2222"},
		{"patches/kubernetes/0001-a.patch", "sha256", sampleInputs().patches[0].SHA256()},
	} {
		if v := got[want.name][want.kind]; v != want.value {
			t.Errorf("%s of %s is %q, want %q", want.kind, want.name, v, want.value)
		}
	}

	in := sampleInputs()
	in.base[0].Sum = "h2:x"
	if _, err := newProvenance(in, "", nil); err == nil {
		t.Error("a sum of an unknown kind is accepted")
	}
}
