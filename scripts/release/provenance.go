package release

import (
	"encoding/json"
	"strings"

	"capacityv2.internal/scripts/toolchain"
)

// statement is an in-toto statement v1 with an SLSA provenance v1, not signed:
// who signs it is the user's choice. The types are ours because the official
// Go types are protobuf, whose JSON is not byte-stable.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType string `json:"buildType"`
	// ExternalParameters are what a user of `make release` chooses.
	ExternalParameters map[string]any `json:"externalParameters"`
	InternalParameters map[string]any `json:"internalParameters"`
	// ResolvedDependencies are the materials.
	ResolvedDependencies []resource `json:"resolvedDependencies"`
}

// runDetails has no times and no invocation: they would differ between two
// builds of the same inputs.
type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// builder is the builder's ID: this tooling, on a machine that nobody vouches for.
const builder = "https://capacityv2.internal/scripts/release@local"

// newProvenance returns the provenance of subjects. Its materials are the
// modules of the bases, the modules that are compiled in, and of each source the
// base's and the patched tree, and the patches.
func newProvenance(in inputs, subjects []Artefact) ([]byte, error) {
	s := statement{
		Type:          "https://in-toto.io/Statement/v1",
		PredicateType: "https://slsa.dev/provenance/v1",
	}
	for _, a := range subjects {
		s.Subject = append(s.Subject, resource{Name: a.Name, Digest: map[string]string{"sha256": a.SHA256}})
	}
	def := &s.Predicate.BuildDefinition
	def.BuildType = "https://capacityv2.internal/scripts/release/v1"
	bases, ldflags := map[string]string{}, map[string]string{}
	for _, src := range in.sources {
		bases[src.project.Name] = src.stamp.Version.Base
		if f := src.stamp.Ldflags(); f != "" {
			ldflags[src.project.Name] = f
		}
	}
	def.ExternalParameters = map[string]any{
		"version": in.version.String(), "bases": bases, "platforms": in.platforms, "sourceDateEpoch": in.date.Unix(),
	}
	def.InternalParameters = map[string]any{
		"go": in.goVersion, "environment": buildEnvironment(), "tags": toolchain.Tags, "ldflags": ldflags,
	}
	for _, m := range in.modules() {
		if m.Version == "" {
			continue
		}
		r := resource{Name: m.Path, URI: m.purl()}
		if m.Sum != "" {
			sum, err := dirHash(m.Sum)
			if err != nil {
				return nil, err
			}
			r.Digest = map[string]string{"dirHash": sum}
		}
		def.ResolvedDependencies = append(def.ResolvedDependencies, r)
	}
	for _, src := range in.sources {
		def.ResolvedDependencies = append(def.ResolvedDependencies,
			resource{Name: "base/" + src.project.Name, Digest: map[string]string{"gitTree": src.baseTree}},
			resource{Name: "source/" + src.project.Name, Digest: map[string]string{"gitCommit": src.stamp.Commit, "gitTree": src.tree}})
		for _, p := range src.patches {
			def.ResolvedDependencies = append(def.ResolvedDependencies, resource{Name: src.patch(p), Digest: map[string]string{"sha256": p.SHA256()}})
		}
	}
	s.Predicate.RunDetails.Builder.ID = builder
	return marshal(s)
}

// buildEnvironment is the environment that shapes the programs' bytes.
func buildEnvironment() []string {
	var out []string
	for _, e := range toolchain.Env() {
		if strings.HasPrefix(e, "CGO_ENABLED=") || strings.HasPrefix(e, "GOFLAGS=") {
			out = append(out, e)
		}
	}
	return out
}

// marshal writes v as indented JSON that keeps <, > and & readable.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(b.String()), err
}
