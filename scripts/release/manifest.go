package release

import (
	"capacityv2.internal/scripts/toolchain"
)

// ManifestName, SumsName and the other names of what goes with the tarballs.
const (
	ManifestName   = "manifest.json"
	SumsName       = "SHA256SUMS"
	sbomName       = "sbom.spdx.json"
	provenanceName = "provenance.intoto.json"
)

// Manifest says what a release is and what it was made from.
type Manifest struct {
	Version  string `json:"version"`
	ImageTag string `json:"imageTag"`
	Base     struct {
		Version string `json:"version"`
		Tree    string `json:"tree"`
	} `json:"base"`
	Source struct {
		Commit string `json:"commit"`
		Tree   string `json:"tree"`
	} `json:"source"`
	SourceDateEpoch int64    `json:"sourceDateEpoch"`
	Platforms       []string `json:"platforms"`
	Go              struct {
		Version     string   `json:"version"`
		Environment []string `json:"environment"`
		Tags        string   `json:"tags"`
		Ldflags     string   `json:"ldflags"`
	} `json:"go"`
	Patches   []ManifestPatch `json:"patches"`
	Programs  []program       `json:"programs"`
	Images    []Image         `json:"images"`
	Artefacts []Artefact      `json:"artefacts"`
}

// ManifestPatch is a patch of the Kubernetes series.
type ManifestPatch struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"`
	Subject string `json:"subject"`
	Class   string `json:"class"`
}

func newManifest(in inputs, ldflags string, images []Image, artefacts []Artefact) Manifest {
	m := Manifest{
		Version: in.version.String(), ImageTag: in.version.ImageTag(), SourceDateEpoch: in.date.Unix(), Platforms: in.platforms,
		Patches: []ManifestPatch{}, Programs: in.programs, Images: images, Artefacts: artefacts,
	}
	m.Base.Version, m.Base.Tree = in.version.Base, in.baseTree
	m.Source.Commit, m.Source.Tree = in.commit, in.tree
	m.Go.Version, m.Go.Environment, m.Go.Tags, m.Go.Ldflags = in.goVersion, buildEnvironment(), toolchain.Tags, ldflags
	for _, p := range in.patches {
		m.Patches = append(m.Patches, ManifestPatch{p.Name, p.SHA256(), p.Subject, p.Class()})
	}
	return m
}
