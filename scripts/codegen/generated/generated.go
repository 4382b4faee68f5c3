// Package generated tells which files of a Kubernetes tree are written by a
// generator. It needs no tree: the lint asks it about the paths in patches.
package generated

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// fileNames are always generated, whatever their folder.
var fileNames = []string{
	"expansion_generated.go",
	"generated.pb.go",
	"generated.proto",
	"generated.protomessage.pb.go",
	"generated_expansion.go",
	"types_swagger_doc_generated.go",
}

// prefixes of generated folders.
var prefixes = []string{
	"api/discovery/",
	"api/openapi-spec/",
	"test/compatibility_lifecycle/reference/",
	"vendor/",
}

// files are single generated files without a telling name.
var files = []string{
	"csi.proto", // of the CSI spec
	"go.work",
	"hack/golangci-hints.yaml",
	"hack/golangci.yaml",
	"test/conformance/testdata/conformance.yaml",
	"test/instrumentation/documentation/documentation-list.yaml",
	"test/instrumentation/documentation/documentation.md",
	"test/instrumentation/testdata/stable-metrics-list.yaml",
}

// patterns are the rest of what upstream's hack/update-*.sh write.
var patterns = []*regexp.Regexp{
	// API rule violations that upstream accepts.
	regexp.MustCompile(`^api/api-rules/.*\.list$`),
	// Round-trip fixtures; those of released versions are copied, never edited.
	regexp.MustCompile(`(^|/)testdata/(HEAD|v1\.[0-9]+\.[0-9]+)/.*\.(json|yaml|pb)$`),
	// Bindings of .proto files that are written by hand.
	regexp.MustCompile(`(^|/)(api|csi)(_grpc)?\.pb\.go$`),
	regexp.MustCompile(`^staging/src/k8s\.io/[^/]+/go\.(mod|sum)$`),
	// mockery.
	regexp.MustCompile(`^(pkg/kubelet|staging/src/k8s\.io/client-go/rest|test)/(.*/)?(mocks|mocks_test|mockdirentry)\.go$`),
}

// clients matches the Go files of client-go and of its likes that are generated
// but for the hand-written ones among them.
var clients = regexp.MustCompile(`^staging/src/k8s\.io/(` +
	`client-go/(applyconfigurations|informers|kubernetes|listers)` +
	`|.+/(applyconfiguration|clientset|clientset_generated|externalversions|listers|informers)` +
	`)/.*\.go$`)

// handWritten are the hand-written files in those folders.
var handWritten = []*regexp.Regexp{
	regexp.MustCompile(`_expansion\.go$`),
	regexp.MustCompile(`_test\.go$`),
	regexp.MustCompile(`^staging/src/k8s\.io/client-go/(applyconfigurations|informers|kubernetes|listers)/doc\.go$`),
	regexp.MustCompile(`^staging/src/k8s\.io/client-go/kubernetes/import\.go$`),
	regexp.MustCompile(`^staging/src/k8s\.io/client-go/listers/generic_helpers\.go$`),
	regexp.MustCompile(`^staging/src/k8s\.io/client-go/applyconfigurations/meta/v1/unstructured\.go$`),
}

// Path reports whether the file at p, a slash-separated path in a Kubernetes
// tree, is generated.
func Path(p string) bool {
	name := path.Base(p)
	switch {
	case name == "OWNERS":
		return false
	case strings.HasPrefix(name, "zz_generated."),
		slices.Contains(fileNames, name),
		slices.Contains(files, p):
		return true
	}
	for _, prefix := range prefixes {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	for _, re := range patterns {
		if re.MatchString(p) {
			return true
		}
	}
	if !clients.MatchString(p) {
		return false
	}
	return !slices.ContainsFunc(handWritten, func(re *regexp.Regexp) bool { return re.MatchString(p) })
}

// marker is Go's convention (https://go.dev/s/generatedcode).
var marker = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.\r?$`)

var packageClause = regexp.MustCompile(`(?m)^package `)

// Content reports whether the content of a Go file says that it is generated.
// It serves for files that [Path] does not know, as of a later release. Only
// the part before the package clause counts: generators hold the line as text.
func Content(b []byte) bool {
	if i := packageClause.FindIndex(b); i != nil {
		b = b[:i[0]]
	}
	return marker.Match(b)
}
