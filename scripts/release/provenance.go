package release

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/toolchain"
)

const provenanceName = "provenance.intoto.json"

// statement is an in-toto statement v1 with an SLSA provenance v1. The signature of the sums covers
// it. The official Go types are protobuf, whose JSON is not byte-stable.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	// Predicate has no times and no invocation: they would differ between two builds of the
	// same inputs.
	Predicate map[string]any `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// builder is the builder's ID: this tooling, on a machine that nobody vouches for.
const builder = "https://capacityv2.internal/scripts/release@local"

// newProvenance returns the provenance of files with these sums. Its materials are the
// modules of the bases, the modules that are compiled in, and of each source the
// base's and the patched tree, and the patches.
func newProvenance(in inputs, sums map[string]string) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range sortedKeys(sums) {
		s.Subject = append(s.Subject, newResource(name, "sha256", sums[name]))
	}
	bases, ldflags := map[string]string{}, map[string]string{}
	var materials []resource
	all := in.modules()
	for _, m := range all.sorted() {
		r := resource{Name: m.Path, URI: purl(m).Locator}
		if all[m] != "" {
			sum, err := dirHash(all[m])
			if err != nil {
				return nil, err
			}
			r.Digest = map[string]string{"dirHash": sum}
		}
		materials = append(materials, r)
	}
	for _, src := range in.sources {
		name := src.project.Name
		bases[name] = src.stamp.Version.Base
		if f := src.stamp.Ldflags(); f != "" {
			ldflags[name] = f
		}
		materials = append(materials, newResource("base/"+name, "gitTree", src.baseTree),
			newResource("source/"+name, "gitCommit", src.stamp.Commit, "gitTree", src.tree))
		for _, p := range src.patches {
			materials = append(materials, newResource(src.patch(p), "sha256", p.SHA256()))
		}
	}
	if in.proxyBase != "" {
		materials = append(materials, newResource("base image of "+kubeProxy, "sha256", in.proxyBase))
	}
	s.Predicate = map[string]any{
		"buildDefinition": map[string]any{
			"buildType": "https://capacityv2.internal/scripts/release/v1",
			// What a user of `make release` chooses.
			"externalParameters": map[string]any{
				"version": in.version.String(), "bases": bases, "platform": platform, "sourceDateEpoch": in.date.Unix(),
			},
			"internalParameters": map[string]any{
				"go": in.goVersion, "environment": toolchain.Shape, "tags": toolchain.Tags, "ldflags": ldflags,
			},
			"resolvedDependencies": materials,
		},
		"runDetails": map[string]any{"builder": map[string]string{"id": builder}},
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// newResource takes digests as kind, value and so on.
func newResource(name string, digests ...string) resource {
	r := resource{Name: name, Digest: map[string]string{}}
	for i := 0; i < len(digests); i += 2 {
		r.Digest[digests[i]] = digests[i+1]
	}
	return r
}

// readSubjects returns the sums of the files that the provenance in dir is of.
func readSubjects(dir string) (map[string]string, error) {
	var s statement
	if err := files.ReadJSON(filepath.Join(dir, provenanceName), &s); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, r := range s.Subject {
		sums[r.Name] = r.Digest["sha256"]
	}
	return sums, nil
}

// dirHash turns an h1: sum into hex, the form that SPDX and in-toto use.
func dirHash(sum string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil || len(b) != 32 || !strings.HasPrefix(sum, "h1:") {
		return "", fmt.Errorf("%q is no h1: sum of a Go module", sum)
	}
	return hex.EncodeToString(b), nil
}
