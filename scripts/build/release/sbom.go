// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
	gomodule "golang.org/x/mod/module"
)

const (
	sbomName    = "sbom.spdx.json"
	noAssertion = "NOASSERTION"
)

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// id makes an SPDX identifier.
func id(parts ...string) common.ElementID {
	return common.ElementID(notInID.ReplaceAllString(strings.Join(parts, "-"), "-"))
}

// sbom returns the SPDX 2.3 document of a release: the patched sources, each of
// which descends from its base, with every patch and its sums; the programs
// generated from them; and the sources and the Go modules that each program contains.
func sbom(in inputs) ([]byte, error) {
	name := "kubernetes-" + in.version.String()
	namespace := "https://spdx.org/spdxdocs/" + name
	for _, s := range in.sources {
		// A name for this document only, as SPDX asks: the commits stand for all inputs.
		namespace += "-" + s.stamp.Commit
	}
	d := document{&spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      name,
		DocumentNamespace: namespace,
		CreationInfo: &spdx.CreationInfo{
			Created:  in.date.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: seriesName + "-release"}},
		},
	}}
	versions := map[string]string{}
	for _, s := range in.sources {
		versions[s.project.Name] = s.stamp.Version.String()
		d.addSource(s)
	}
	all := in.modules()
	for _, m := range all.sorted() {
		d.addModule(m, all[m])
	}
	for _, p := range in.programs {
		d.addProgram(p, versions[p.source])
	}
	var b bytes.Buffer
	if err := json.Write(d.Document, &b, json.Indent(" "), json.EscapeHTML(false)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// document is an SPDX document that grows.
type document struct{ *spdx.Document }

func (d document) relate(a common.ElementID, kind string, b common.ElementID) {
	d.Relationships = append(d.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: kind,
	})
}

func sourceID(project string) common.ElementID { return id("source", project) }

func (s source) baseID() common.ElementID { return id("base", s.project.Name) }

func (d document) addSource(s source) {
	name, version := s.project.Name, s.stamp.Version
	origin := "assembled from the Go modules below"
	if s.base == nil {
		origin = "git checkout of the tag"
	}
	d.Packages = append(d.Packages,
		&spdx.Package{
			PackageName: name, PackageSPDXIdentifier: sourceID(name), PackageVersion: version.String(), PackageFileName: s.tarball(),
			PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "SOURCE", PackageLicenseDeclared: "Apache-2.0",
			PackageSourceInfo:         "git commit " + s.stamp.Commit + ", tree " + s.tree,
			PackageExternalReferences: []*spdx.PackageExternalReference{purl(gomodule.Version{Path: s.project.Module, Version: version.String()})},
		},
		&spdx.Package{
			PackageName: name, PackageSPDXIdentifier: s.baseID(), PackageVersion: version.Base,
			PackageDownloadLocation: "git+https://" + repository(s.project.Module) + "@" + version.Base, PrimaryPackagePurpose: "SOURCE",
			PackageSourceInfo: origin + "; git tree " + s.baseTree, PackageLicenseDeclared: "Apache-2.0",
		})
	d.relate("DOCUMENT", common.TypeRelationshipDescribe, sourceID(name))
	d.relate(sourceID(name), common.TypeRelationshipDescendantOf, s.baseID())
	for _, m := range s.base.sorted() {
		d.relate(s.baseID(), common.TypeRelationshipGeneratedFrom, moduleID(m))
	}
	for _, p := range s.patches {
		patch := id("patch", name, p.Name)
		sum := sha1.Sum(p.Bytes) // SPDX 2.3 requires it
		d.Files = append(d.Files, &spdx.File{
			FileName: "./" + s.patch(p), FileSPDXIdentifier: patch, FileTypes: []string{"SOURCE"},
			Checksums: []common.Checksum{
				{Algorithm: common.SHA1, Value: hex.EncodeToString(sum[:])},
				{Algorithm: common.SHA256, Value: p.SHA256()},
			},
			FileCopyrightText: noAssertion, FileComment: fmt.Sprintf("%s (Class: %s)", p.Subject, p.Class()),
		})
		d.relate(patch, common.TypeRelationshipPatchFor, s.baseID())
		d.relate(patch, common.TypeRelationshipPatchApplied, sourceID(name))
	}
}

func (d document) addModule(m gomodule.Version, sum string) {
	info := "go.sum " + sum
	if sum == "" {
		info = "from vendor/ of the source"
	}
	d.Packages = append(d.Packages, &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: moduleID(m), PackageVersion: m.Version,
		PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "LIBRARY", PackageSourceInfo: info,
		PackageExternalReferences: []*spdx.PackageExternalReference{purl(m)},
	})
}

func (d document) addProgram(p program, version string) {
	pid := id("program", platform, p.name)
	d.Packages = append(d.Packages, &spdx.Package{
		PackageName: p.name, PackageSPDXIdentifier: pid, PackageVersion: version, PackageFileName: platform + "/" + p.name,
		PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: p.sha256}},
	})
	d.relate(pid, common.TypeRelationshipGeneratedFrom, sourceID(p.source))
	for _, s := range p.linked {
		d.relate(pid, common.TypeRelationshipStaticLink, sourceID(s))
	}
	for _, m := range p.modules.sorted() {
		d.relate(pid, common.TypeRelationshipStaticLink, moduleID(m))
	}
}

// repository is where the code of a Go module of the projects is.
func repository(path string) string {
	path, _, _ = gomodule.SplitPathVersion(path)
	if name, ok := strings.CutPrefix(path, "k8s.io/"); ok {
		return "github.com/kubernetes/" + name
	}
	return path
}

func moduleID(m gomodule.Version) common.ElementID { return id("module", m.Path, m.Version) }

// purl refers to a module by its package URL.
func purl(m gomodule.Version) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B"),
	}
}
