// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"aead.dev/minisign"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// diskGiB is what a release needs beside the tree and the build cache.
const diskGiB = 4

// Release is one that is being made.
type Release struct {
	ws  workspace.Workspace
	key *minisign.PrivateKey // nil: it is not signed
	in  inputs

	partial string // everything is made here,
	out     string // the release itself in this folder of it,
	dist    string // which becomes this one
}

// New returns the release of the trees of ws, in a folder of its own below dist/ that is
// named by the version. The key signs it, if there is one.
func New(ws workspace.Workspace, key *minisign.PrivateKey) *Release {
	return &Release{ws: ws, key: key}
}

// Tasks make the release. One of ours that is there is replaced at the very end; until
// then, and on any error, it stays as it is.
func (rel *Release) Tasks() []run.Task {
	return []run.Task{
		{Name: "check the inputs", Do: rel.check},
		{Name: "build the programs", Do: rel.build},
		{Name: "pack sources and series", Do: rel.packInputs},
		{Name: "pack programs and images", Do: rel.packPrograms},
		{Name: "write SBOM, sums and signature", Do: rel.finish},
	}
}

// Close removes what a release that failed has left.
func (rel *Release) Close() error { return os.RemoveAll(rel.partial) }

// check reads every input, refuses what would not be reproducible, and makes
// the folders.
func (rel *Release) check(ctx context.Context, s *run.Step) error {
	ws := rel.ws
	err := toolchain.RequireDisk(ws.Work, diskGiB)
	if err != nil {
		return err
	}
	if rel.in, err = readInputs(ctx, ws, s); err != nil {
		return err
	}
	v := rel.in.version
	rel.dist = filepath.Join(ws.Dist(), v.String())
	if err := errors.Join(ensureOurs(rel.dist, v), ensureSignatureStays(rel.dist, rel.key)); err != nil {
		return err
	}
	s.Sayf("release %s, dated %s", v, rel.in.date.Format("2006-01-02T15:04:05Z"))
	// Left by a release that was killed.
	rel.partial = filepath.Join(ws.Dist(), ".partial-"+v.String())
	rel.out = filepath.Join(rel.partial, "release")
	return errors.Join(os.RemoveAll(rel.partial), os.MkdirAll(rel.out, 0o755))
}

// ensureOurs refuses to replace a folder that is no release.
func ensureOurs(dir string, v Version) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if _, sumsErr := os.Stat(filepath.Join(dir, sumsName)); err != nil || sumsErr != nil {
		return run.Refuse(dir+" holds something else than the release "+v.String(), "no such folder, or an earlier "+v.String(), "mv "+dir+" elsewhere")
	}
	return nil
}

// ensureSignatureStays refuses to replace a release that is signed with one that is not.
func ensureSignatureStays(dir string, key *minisign.PrivateKey) error {
	if _, err := os.Stat(filepath.Join(dir, signatureName)); key != nil || err != nil {
		return nil
	}
	return run.Refuse(dir+" is signed, and SIGN_KEY names no key", "a key, or no signed release there", "make release SIGN_KEY=FILE, or mv "+dir+" elsewhere")
}

// build builds the programs where `make up` does, too.
func (rel *Release) build(ctx context.Context, s *run.Step) error {
	dir := rel.ws.Components()
	for _, src := range rel.in.sources {
		names := Programs(src.project.Name)
		if len(names) == 0 {
			continue
		}
		if err := Build(ctx, src.project.Tree(), src.stamp, s.Log, dir, names...); err != nil {
			return err
		}
		for _, name := range names {
			p := program{name: name, source: src.project.Name, linked: sortedKeys(src.stamp.linked)}
			var err error
			if p.sha256, err = sum(filepath.Join(dir, name)); err != nil {
				return err
			}
			if p.modules, rel.in.goVersion, err = programModules(filepath.Join(dir, name)); err != nil {
				return err
			}
			rel.in.programs = append(rel.in.programs, p)
		}
	}
	if rel.in.goVersion != toolchain.GoVersion {
		s.Sayf("built with %s; upstream's release is built with %s, and so are ours: other bytes", rel.in.goVersion, toolchain.GoVersion)
	}
	return nil
}

// finish writes what describes the release, signs it, and puts it in its place.
func (rel *Release) finish(_ context.Context, s *run.Step) error {
	document, err := sbom(rel.in)
	if err != nil {
		return err
	}
	if err := errors.Join(rel.write(sbomName, document), rel.write(imagesName, sumsList(rel.in.images))); err != nil {
		return err
	}
	sums, err := sumFolder(rel.out)
	if err != nil {
		return err
	}
	if err := rel.write(sumsName, sumsList(sums)); err != nil {
		return err
	}
	if rel.key == nil {
		s.Sayf("not signed: SIGN_KEY names no key")
	} else if err := sign(rel.out, rel.in.version.String(), *rel.key); err != nil {
		return err
	}
	if err := replace(rel.out, rel.dist, filepath.Join(rel.partial, "replaced")); err != nil {
		return err
	}
	s.AtEnd("release: %s\n  is it whole?         cd %[1]s && sha256sum --check --quiet %s\n", rel.dist, sumsName)
	if rel.key != nil {
		s.AtEnd("  who signed it?       minisign -V -p minisign.pub -m %s\n", filepath.Join(rel.dist, sumsName))
	}
	s.AtEnd("  is another the same? diff -r %s OTHER/dist/%s\n", rel.dist, rel.in.version)
	return nil
}

func (rel *Release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(rel.out, name), content, 0o644)
}

// replace moves the folder from to the place to; what was there goes to old,
// and back again when the move fails.
func replace(from, to, old string) error {
	err := os.Rename(to, old)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, to)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(old, to))
	}
	return nil
}
