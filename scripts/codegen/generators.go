package codegen

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/codegen/generated"
)

// Upstream's scripts.
const (
	codegenScript  = "hack/update-codegen.sh"
	fixturesScript = "hack/update-generated-api-compatibility-data.sh"
	featuresScript = "hack/update-featuregates.sh"
	specScript     = "hack/update-openapi-spec.sh"
)

const staging = "staging/src/k8s.io/"

// generator is one of upstream's generators.
type generator struct {
	name string
	// script is called in the folder dir below the tree, "" for its top.
	dir, script string
	// arg picks the generator in a script that knows several.
	arg string
	// reads reports whether the file p is an input; tags are the generator tags
	// of its Go package.
	reads func(p string, tags []string) bool
	// writes reports whether the file p is an output.
	writes func(p string) bool
	// programs are needed beside Go, git and bash.
	programs []string
	// etcd says that the script starts one.
	etcd bool
}

// generators are in the order in which they depend on each other, which is
// upstream's. Left out: protobindings, whose output names the exact release of
// protoc, and mocks, which need mockery; the series may not touch their files
// (see proof).
var generators = []generator{
	codegen("protobuf", tagged("protobuf-gen"), named("generated.proto", "generated.pb.go", "generated.protomessage.pb.go")).with("protoc"),
	codegen("deepcopy", tagged(typeTags...), named("zz_generated.deepcopy.go")),
	codegen("swagger", inAPI, named("types_swagger_doc_generated.go")),
	codegen("prerelease", tagged("prerelease-lifecycle-gen"), named("zz_generated.prerelease-lifecycle.go")),
	codegen("defaults", tagged(typeTags...), named("zz_generated.defaults.go")),
	codegen("validation", tagged(typeTags...), func(p string) bool { return strings.HasPrefix(path.Base(p), "zz_generated.validations.") }),
	codegen("conversions", tagged(typeTags...), named("zz_generated.conversion.go")),
	codegen("register", tagged("register-gen"), named("zz_generated.register.go")),
	codegen("openapi", tagged("openapi-gen"), func(p string) bool {
		return named("zz_generated.openapi.go", "zz_generated.model_name.go")(p) || p == "api/api-rules/violation_exceptions.list"
	}),
	codegen("applyconfigs", inAPI, under(staging+"client-go/applyconfigurations/")),
	codegen("clients", inAPI, under(staging+"client-go/kubernetes/")),
	codegen("listers", inAPI, under(staging+"client-go/listers/")),
	codegen("informers", inAPI, under(staging+"client-go/informers/")),
	// Upstream calls these from update-codegen.sh, after one of a nested module
	// that the assembled tree does not have.
	subproject("kube-aggregator"),
	subproject("sample-apiserver"),
	// The register generator removes its file, for it to be written anew here.
	subproject("sample-controller", tagged("register-gen")),
	subproject("metrics"),
	subproject("apiextensions-apiserver"),
	subproject("apiextensions-apiserver/examples/client-go"),
	{
		name: "API fixtures", script: fixturesScript, reads: inAPI,
		writes: under(staging+"api/testdata/HEAD/", staging+"apiextensions-apiserver/pkg/apis/testdata/HEAD/"),
	},
	{
		name: "feature lists", script: featuresScript,
		reads:  func(p string, _ []string) bool { return goSource(p) },
		writes: under("test/compatibility_lifecycle/reference/"),
	},
	{
		name: "OpenAPI and discovery documents", script: specScript,
		reads: func(p string, tags []string) bool {
			return inAPI(p, tags) || tagged("openapi-gen")(p, tags) || goSource(p) &&
				(strings.HasPrefix(p, "pkg/registry/") || strings.HasPrefix(p, "pkg/controlplane/"))
		},
		writes:   under("api/openapi-spec/", "api/discovery/"),
		programs: []string{"make", "curl", "jq", "openssl", "ss"}, etcd: true,
	},
}

// typeTags mark API packages: a changed type can change any of their helpers,
// and those of the packages that convert, default or validate it.
var typeTags = []string{"deepcopy-gen", "defaulter-gen", "conversion-gen", "validation-gen", "protobuf-gen", "openapi-gen"}

func codegen(name string, reads func(string, []string) bool, writes func(string) bool) generator {
	return generator{name: name, script: codegenScript, arg: "^" + name + "$", reads: reads, writes: writes}
}

// subproject is a staging module with generators of its own. also matches more
// inputs than the module's own API packages.
func subproject(module string, also ...func(string, []string) bool) generator {
	dir := staging + module
	return generator{
		name: module, dir: dir, script: "hack/update-codegen.sh",
		reads: func(p string, tags []string) bool {
			return strings.HasPrefix(p, dir+"/") && tagged(typeTags...)(p, tags) ||
				slices.ContainsFunc(also, func(f func(string, []string) bool) bool { return f(p, tags) })
		},
		writes: func(p string) bool {
			return strings.HasPrefix(p, dir+"/pkg/") && generated.Path(p) && !strings.Contains(p, "/testdata/")
		},
	}
}

func (g generator) with(programs ...string) generator {
	g.programs = programs
	return g
}

func tagged(names ...string) func(string, []string) bool {
	return func(p string, tags []string) bool {
		return goSource(p) && slices.ContainsFunc(names, func(n string) bool { return slices.Contains(tags, n) })
	}
}

// inAPI matches the types that are served, and what they are made of.
func inAPI(p string, _ []string) bool {
	return goSource(p) && (strings.HasPrefix(p, staging+"api/") || strings.HasPrefix(p, staging+"apimachinery/pkg/apis/"))
}

func goSource(p string) bool { return strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go") }

func named(names ...string) func(string) bool {
	return func(p string) bool { return slices.Contains(names, path.Base(p)) }
}

// under matches the generated files below the folders.
func under(folders ...string) func(string) bool {
	return func(p string) bool {
		return generated.Path(p) && slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(p, f) })
	}
}

// choose returns the generators of scope for a series that touches the files; tags maps
// each file's folder to the generator tags there. Generators of modules that the tree is
// without are left out.
func choose(scope Scope, without, touched []string, tags map[string][]string) []generator {
	var todo []generator
	for _, g := range generators {
		if slices.Contains(without, strings.TrimPrefix(g.dir, "staging/src/")) {
			continue
		}
		if scope == All || slices.ContainsFunc(touched, func(p string) bool { return g.writes(p) || g.reads(p, tags[path.Dir(p)]) }) {
			todo = append(todo, g)
		}
	}
	return todo
}

var tagLine = regexp.MustCompile(`(?m)^\s*//\s*\+k8s:([a-z-]+-gen)\b`)

// folderTags returns the generator tags of each folder with one of the files.
func folderTags(dir string, files []string) (map[string][]string, error) {
	tags := map[string][]string{}
	for _, f := range files {
		d := path.Dir(f)
		if _, done := tags[d]; done || !strings.HasSuffix(f, ".go") {
			continue
		}
		tags[d] = []string{}
		sources, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(d), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			b, err := os.ReadFile(s)
			if err != nil {
				return nil, err
			}
			for _, m := range tagLine.FindAllSubmatch(b, -1) {
				if t := string(m[1]); !slices.Contains(tags[d], t) {
					tags[d] = append(tags[d], t)
				}
			}
		}
	}
	return tags, nil
}

// script is one call of one of upstream's scripts.
type script struct {
	dir, path string
	args      []string
}

// scriptsOf groups the generators by their scripts: upstream's largest one
// searches the whole tree at each start.
func scriptsOf(todo []generator) []script {
	var all []script
	for _, g := range todo {
		if n := len(all); n == 0 || all[n-1].path != g.script || all[n-1].dir != g.dir {
			all = append(all, script{dir: g.dir, path: g.script})
		}
		if g.arg != "" {
			s := &all[len(all)-1]
			s.args = append(s.args, g.arg)
		}
	}
	return all
}

func (s script) title() string { return path.Join(s.dir, s.path) }

func names(gens []generator) string {
	var n []string
	for _, g := range gens {
		n = append(n, g.name)
	}
	return strings.Join(n, ", ")
}

func programs(gens []generator) []string {
	all := []string{"bash", "git"}
	for _, g := range gens {
		for _, p := range g.programs {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// proof fails unless every generator wrote at least one of its files, and every
// generated file that the series touches was written anew (or removed): only
// then does "no difference" mean anything.
func proof(todo []generator, touched []string, before, after map[string]stamp, written map[string]bool) error {
	var errs []error
	for _, g := range todo {
		ran := false
		for p := range written {
			if ran = g.writes(p); ran {
				break
			}
		}
		if !ran {
			errs = append(errs, fmt.Errorf("%s (%s) ended well but wrote none of its files", g.name, g.script))
		}
	}
	for _, p := range touched {
		_, was := before[p]
		_, is := after[p]
		if was && is && generated.Path(p) && !written[p] {
			errs = append(errs, fmt.Errorf("%s is generated, but no generator that ran wrote it: is it in the series by mistake?", p))
		}
	}
	return errors.Join(errs...)
}
