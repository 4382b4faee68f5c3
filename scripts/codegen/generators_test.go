package codegen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	const api = staging + "api/storage/v1/"
	apiTags := []string{"deepcopy-gen", "protobuf-gen", "openapi-gen", "prerelease-lifecycle-gen"}
	types := "protobuf deepcopy swagger prerelease defaults validation conversions openapi applyconfigs clients listers informers API fixtures feature lists OpenAPI and discovery documents"
	for name, c := range map[string]struct {
		touched []string
		tags    map[string][]string
		want    string
	}{
		"nothing":            {nil, nil, ""},
		"a test":             {[]string{"pkg/scheduler/x_test.go"}, nil, ""},
		"a document":         {[]string{"CHANGELOG/README.md"}, nil, ""},
		"code without types": {[]string{"pkg/scheduler/x.go"}, nil, "feature lists"},
		"API types":          {[]string{api + "types.go"}, map[string][]string{strings.TrimSuffix(api, "/"): apiTags}, types},
		"internal types": {[]string{"pkg/apis/storage/types.go"}, map[string][]string{"pkg/apis/storage": {"deepcopy-gen"}},
			"deepcopy defaults validation conversions feature lists"},
		"plugin arguments": {[]string{"staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go"},
			map[string][]string{"staging/src/k8s.io/kube-scheduler/config/v1": {"deepcopy-gen", "openapi-gen"}},
			"deepcopy defaults validation conversions openapi feature lists OpenAPI and discovery documents"},
		"only an output":     {[]string{staging + "client-go/applyconfigurations/storage/v1/csidriver.go"}, nil, "applyconfigs feature lists"},
		"only a fixture":     {[]string{staging + "api/testdata/HEAD/storage.k8s.io.v1.CSIDriver.json"}, nil, "API fixtures"},
		"only a document of": {[]string{"api/openapi-spec/swagger.json"}, nil, "OpenAPI and discovery documents"},
		"only a list":        {[]string{"test/compatibility_lifecycle/reference/feature_list.md"}, nil, "feature lists"},
		"register": {[]string{"staging/src/k8s.io/sample-controller/pkg/apis/samplecontroller/v1alpha1/zz_generated.register.go"}, nil,
			"register sample-controller feature lists"},
	} {
		got := strings.ReplaceAll(names(choose(Storage, nil, c.touched, c.tags)), ",", "")
		if got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
	if got := choose(All, nil, nil, nil); len(got) != len(generators) {
		t.Errorf("All chose %d of %d generators", len(got), len(generators))
	}
	without := choose(All, []string{"k8s.io/sample-controller"}, nil, nil)
	if len(without) != len(generators)-1 || strings.Contains(names(without), "sample-controller") {
		t.Errorf("a tree without sample-controller: chose %s", names(without))
	}
}

func TestFolderTags(t *testing.T) {
	dir := t.TempDir()
	for f, content := range map[string]string{
		"pkg/apis/a/doc.go":   "// +k8s:deepcopy-gen=package\n// +k8s:conversion-gen=x\n// +k8s:conversion-gen-external-types=y\npackage a\n",
		"pkg/apis/a/types.go": "package a\n\ntype T struct {\n\t// +k8s:validation-gen=x\n\tF int // +k8s:openapi-gen=no\n}\n",
		"pkg/b/b.go":          "package b\n",
	} {
		if err := write(filepath.Join(dir, f), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tags, err := folderTags(dir, []string{"pkg/apis/a/types.go", "pkg/b/b.go", "pkg/gone/gone.go", "README.md"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tags["pkg/apis/a"])
	if got, want := strings.Join(tags["pkg/apis/a"], " "), "conversion-gen deepcopy-gen validation-gen"; got != want {
		t.Errorf("tags of pkg/apis/a: %q, want %q", got, want)
	}
	if len(tags["pkg/b"]) != 0 || len(tags["pkg/gone"]) != 0 {
		t.Errorf("tags where there are none: %v", tags)
	}
}

func TestScriptsOf(t *testing.T) {
	var got []string
	for _, s := range scriptsOf(generators) {
		got = append(got, s.title())
	}
	want := codegenScript
	if len(got) < 2 || got[0] != want || slices.Contains(got[1:], want) {
		t.Errorf("want one call of %s, then the others: %v", want, got)
	}
	first := scriptsOf(generators)[0].args
	if !slices.Contains(first, "^openapi$") || slices.Index(first, "^openapi$") > slices.Index(first, "^applyconfigs$") {
		t.Errorf("apply configurations need the OpenAPI models first: %v", first)
	}
}

func TestProof(t *testing.T) {
	dir := t.TempDir()
	made := func(name string) stamp {
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		return stamp{fi.ModTime(), fi}
	}
	const p, other = "pkg/apis/storage/zz_generated.deepcopy.go", "pkg/apis/storage/v1/zz_generated.defaults.go"
	old := made("old")
	touched := stamp{old.modified.Add(time.Second), old.file}
	replaced := stamp{old.modified, made("new").file}
	deepcopy := []generator{generators[1]}
	for name, c := range map[string]struct {
		todo          []generator
		touched       []string
		before, after map[string]stamp
		want          string
	}{
		"written":        {deepcopy, []string{p}, map[string]stamp{p: old}, map[string]stamp{p: touched}, ""},
		"replaced":       {deepcopy, []string{p}, map[string]stamp{p: old}, map[string]stamp{p: replaced}, ""},
		"did not run":    {deepcopy, nil, map[string]stamp{p: old}, map[string]stamp{p: old}, "wrote none of its files"},
		"wrote others'":  {deepcopy, nil, map[string]stamp{p: old, other: old}, map[string]stamp{p: old, other: touched}, "wrote none of its files"},
		"not covered":    {deepcopy, []string{other}, map[string]stamp{p: old, other: old}, map[string]stamp{p: touched, other: old}, other + " is generated, but"},
		"removed":        {nil, []string{other}, map[string]stamp{other: old}, nil, ""},
		"not generated":  {nil, []string{"pkg/apis/storage/types.go"}, map[string]stamp{}, map[string]stamp{}, ""},
		"nothing to do":  {nil, nil, nil, nil, ""},
		"only new files": {deepcopy, nil, nil, map[string]stamp{p: touched}, "wrote none of its files"},
	} {
		err := proof(c.todo, c.touched, c.before, c.after, written(c.before, c.after))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
