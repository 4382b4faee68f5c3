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

	"capacityv2.internal/scripts/series"
)

// program is one built program.
type program struct {
	Artefact          // of the program itself, not of a tarball
	Platform string   `json:"platform"`
	modules  []module // compiled into it
}

// inputs are what a release is made from; SBOM, provenance and manifest are
// three views of them.
type inputs struct {
	version  Version
	date     time.Time
	base     []module // what the base was assembled from
	baseTree string   // git's name of the base's tree
	commit   string   // HEAD of the tree with the series
	tree     string   // git's name of HEAD's tree
	patches  []series.Patch
	programs []program
	// platforms in the form linux/amd64.
	platforms []string
	goVersion string
}

const noAssertion = "NOASSERTION"

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// id makes an SPDX identifier.
func id(parts ...string) common.ElementID {
	return common.ElementID(notInID.ReplaceAllString(strings.Join(parts, "-"), "-"))
}

// sbom returns the SPDX 2.3 document of a release: the patched source, which
// descends from the base, with every patch and its sums; the programs generated
// from it; and the Go modules that each program contains.
func sbom(in inputs) ([]byte, error) {
	version := in.version.String()
	doc := &spdx.Document{
		SPDXVersion:    spdx.Version,
		DataLicense:    spdx.DataLicense,
		SPDXIdentifier: "DOCUMENT",
		DocumentName:   "kubernetes-" + version,
		// A name for this document only, as SPDX asks: the commit stands for all inputs.
		DocumentNamespace: "https://spdx.org/spdxdocs/kubernetes-" + version + "-" + in.commit,
		CreationInfo: &spdx.CreationInfo{
			Created:  in.date.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: seriesName + "-release"}},
		},
	}
	relate := func(a common.ElementID, kind string, b common.ElementID) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: kind,
		})
	}
	main := module{Path: "k8s.io/kubernetes", Version: version}
	source, base := id("source"), id("base")
	doc.Packages = append(doc.Packages,
		&spdx.Package{
			PackageName: "kubernetes", PackageSPDXIdentifier: source, PackageVersion: version, PackageFileName: sourceTarball,
			PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "SOURCE",
			PackageSourceInfo:       "git commit " + in.commit + ", tree " + in.tree,
			PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
			PackageExternalReferences: []*spdx.PackageExternalReference{purlRef(main)},
		},
		&spdx.Package{
			PackageName: "kubernetes", PackageSPDXIdentifier: base, PackageVersion: in.version.Base,
			PackageDownloadLocation: "git+https://github.com/kubernetes/kubernetes@" + in.version.Base, PrimaryPackagePurpose: "SOURCE",
			PackageSourceInfo:       "assembled from the Go modules below; git tree " + in.baseTree,
			PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
		})
	relate("DOCUMENT", common.TypeRelationshipDescribe, source)
	relate(source, common.TypeRelationshipDescendantOf, base)

	for _, p := range in.patches {
		patch := id("patch", p.Name)
		sum := sha1.Sum(p.Bytes) // SPDX 2.3 requires it
		doc.Files = append(doc.Files, &spdx.File{
			FileName: "./patches/kubernetes/" + p.Name, FileSPDXIdentifier: patch, FileTypes: []string{"SOURCE"},
			Checksums: []common.Checksum{
				{Algorithm: common.SHA1, Value: hex.EncodeToString(sum[:])},
				{Algorithm: common.SHA256, Value: p.SHA256()},
			},
			LicenseConcluded: noAssertion, LicenseInfoInFiles: []string{noAssertion}, FileCopyrightText: noAssertion,
			FileComment: fmt.Sprintf("%s (Class: %s)", p.Subject, p.Class()),
		})
		relate(patch, common.TypeRelationshipPatchFor, base)
		relate(patch, common.TypeRelationshipPatchApplied, source)
	}

	lists := [][]module{in.base}
	for _, p := range in.programs {
		lists = append(lists, p.modules)
	}
	for _, m := range union(lists...) {
		if m.Version == "" {
			continue
		}
		sum := "go.sum " + m.Sum
		if m.Sum == "" {
			sum = "from vendor/ of the source"
		}
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: m.Path, PackageSPDXIdentifier: m.id(), PackageVersion: m.Version,
			PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "LIBRARY",
			PackageSourceInfo:       sum,
			PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
			PackageExternalReferences: []*spdx.PackageExternalReference{purlRef(m)},
		})
	}
	for _, m := range in.base {
		relate(base, common.TypeRelationshipGeneratedFrom, m.id())
	}
	for _, p := range in.programs {
		pid := id("program", p.Platform, p.Name)
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: p.Name, PackageSPDXIdentifier: pid, PackageVersion: version, PackageFileName: p.Platform + "/" + p.Name,
			PackageDownloadLocation: noAssertion, PrimaryPackagePurpose: "APPLICATION",
			PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}},
			PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion, PackageCopyrightText: noAssertion,
		})
		relate(pid, common.TypeRelationshipGeneratedFrom, source)
		for _, m := range p.modules {
			if m.Version != "" {
				relate(pid, common.TypeRelationshipStaticLink, m.id())
			}
		}
	}
	var b bytes.Buffer
	if err := json.Write(doc, &b, json.Indent(" "), json.EscapeHTML(false)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (m module) id() common.ElementID { return id("module", m.Path, m.Version) }

func purlRef(m module) *spdx.PackageExternalReference {
	return &spdx.PackageExternalReference{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: m.purl()}
}
