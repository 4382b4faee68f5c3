package release

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/common"
	slsa "github.com/in-toto/in-toto-golang/in_toto/slsa_provenance/v1"

	"capacityv2.internal/scripts/toolchain"
)

const provenanceName = "provenance.intoto.json"

// statement is an in-toto statement v1 with an SLSA provenance v1. The signature of the sums covers
// it. The official Go type is protobuf, whose JSON is not byte-stable.
type statement struct {
	Type          string                    `json:"_type"`
	Subject       []slsa.ResourceDescriptor `json:"subject"`
	PredicateType string                    `json:"predicateType"`
	// Predicate has no times and no invocation: they would differ between two builds of the
	// same inputs.
	Predicate slsa.ProvenancePredicate `json:"predicate"`
}

// builder is the builder's ID: this tooling, on a machine that nobody vouches for.
const builder = "https://capacityv2.internal/scripts/release@local"

// newProvenance returns the provenance of files with these sums. Its materials are the
// modules of the bases, the modules that are compiled in, and of each source the
// base's and the patched tree, and the patches.
func newProvenance(in inputs, sums map[string]string) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: slsa.PredicateSLSAProvenance}
	for _, name := range sortedKeys(sums) {
		s.Subject = append(s.Subject, resource(name, "sha256", sums[name]))
	}
	bases, ldflags := map[string]string{}, map[string]string{}
	var materials []slsa.ResourceDescriptor
	for _, m := range in.modules() {
		if m.Version == "" {
			continue
		}
		r := slsa.ResourceDescriptor{Name: m.Path, URI: m.purl()}
		if m.Sum != "" {
			sum, err := dirHash(m.Sum)
			if err != nil {
				return nil, err
			}
			r.Digest = common.DigestSet{"dirHash": sum}
		}
		materials = append(materials, r)
	}
	for _, src := range in.sources {
		name := src.project.Name
		bases[name] = src.stamp.Version.Base
		if f := src.stamp.Ldflags(); f != "" {
			ldflags[name] = f
		}
		materials = append(materials, resource("base/"+name, "gitTree", src.baseTree),
			resource("source/"+name, "gitCommit", src.stamp.Commit, "gitTree", src.tree))
		for _, p := range src.patches {
			materials = append(materials, resource(src.patch(p), "sha256", p.SHA256()))
		}
	}
	if in.proxyBase != "" {
		materials = append(materials, resource("base image of "+kubeProxy, "sha256", in.proxyBase))
	}
	s.Predicate.BuildDefinition = slsa.ProvenanceBuildDefinition{
		BuildType: "https://capacityv2.internal/scripts/release/v1",
		// What a user of `make release` chooses.
		ExternalParameters: map[string]any{
			"version": in.version.String(), "bases": bases, "platform": platform, "sourceDateEpoch": in.date.Unix(),
		},
		InternalParameters: map[string]any{
			"go": in.goVersion, "environment": buildEnvironment(), "tags": toolchain.Tags, "ldflags": ldflags,
		},
		ResolvedDependencies: materials,
	}
	s.Predicate.RunDetails.Builder.ID = builder
	return marshal(s)
}

// resource has a name and digests: kind, value and so on.
func resource(name string, digests ...string) slsa.ResourceDescriptor {
	r := slsa.ResourceDescriptor{Name: name, Digest: common.DigestSet{}}
	for i := 0; i < len(digests); i += 2 {
		r.Digest[digests[i]] = digests[i+1]
	}
	return r
}

// readSubjects returns the sums of the files that the provenance in dir is of.
func readSubjects(dir string) (map[string]string, error) {
	path := filepath.Join(dir, provenanceName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s statement
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sums := map[string]string{}
	for _, r := range s.Subject {
		sums[r.Name] = r.Digest["sha256"]
	}
	return sums, nil
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
