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
	Version         string           `json:"version"`
	ImageTag        string           `json:"imageTag"`
	Sources         []ManifestSource `json:"sources"`
	SourceDateEpoch int64            `json:"sourceDateEpoch"`
	Platforms       []string         `json:"platforms"`
	Go              struct {
		Version     string   `json:"version"`
		Environment []string `json:"environment"`
		Tags        string   `json:"tags"`
	} `json:"go"`
	Programs  []program  `json:"programs"`
	Images    []Image    `json:"images"`
	Artefacts []Artefact `json:"artefacts"`
}

// ManifestSource is the patched source of an upstream project.
type ManifestSource struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Module  string `json:"module"`
	Version string `json:"version"`
	Base    struct {
		Version string `json:"version"`
		Tree    string `json:"tree"`
	} `json:"base"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Ldflags of its programs. Empty: it has none.
	Ldflags string          `json:"ldflags,omitempty"`
	Patches []ManifestPatch `json:"patches"`
}

// ManifestPatch is a patch of a series.
type ManifestPatch struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"`
	Subject string `json:"subject"`
	Class   string `json:"class"`
}

func newManifest(in inputs, images []Image, artefacts []Artefact) Manifest {
	m := Manifest{
		Version: in.version.String(), ImageTag: in.version.ImageTag(), SourceDateEpoch: in.date.Unix(), Platforms: in.platforms,
		Programs: in.programs, Images: images, Artefacts: artefacts,
	}
	m.Go.Version, m.Go.Environment, m.Go.Tags = in.goVersion, buildEnvironment(), toolchain.Tags
	for _, s := range in.sources {
		src := ManifestSource{
			Name: s.project.Name, Title: s.project.Title, Module: s.project.Module, Version: s.stamp.Version.String(),
			Commit: s.stamp.Commit, Tree: s.tree, Ldflags: s.stamp.Ldflags(), Patches: []ManifestPatch{},
		}
		src.Base.Version, src.Base.Tree = s.stamp.Version.Base, s.baseTree
		for _, p := range s.patches {
			src.Patches = append(src.Patches, ManifestPatch{p.Name, p.SHA256(), p.Subject, p.Class()})
		}
		m.Sources = append(m.Sources, src)
	}
	return m
}
