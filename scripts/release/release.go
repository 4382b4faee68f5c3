package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/tools"
	"capacityv2.internal/scripts/workspace"
)

// Options of a release.
type Options struct {
	// Platforms to build for; see [ParsePlatforms].
	Platforms []Platform
	// CheckTree refuses a project's tree that is not the base with the series on it.
	// Nil checks only that no file differs from HEAD.
	CheckTree func(context.Context, workspace.Project) error
}

// diskGiB is what a release needs beside the tree and the build cache.
const diskGiB = 4

// Release is one that is being made.
type Release struct {
	ws workspace.Workspace
	o  Options
	in inputs

	partial string // everything is made here,
	out     string // the release itself in this folder of it,
	dist    string // which becomes this one

	images    []Image
	artefacts []Artefact
}

// New returns the release of the trees of ws, in a folder of its own below dist/ that is
// named by the version.
func New(ws workspace.Workspace, o Options) *Release { return &Release{ws: ws, o: o} }

// Dir is the folder of the release. It is known when the release has been made.
func (rel *Release) Dir() string { return rel.dist }

// Tasks make the release. One of ours that is there is replaced at the very end; until
// then, and on any error, it stays as it is.
func (rel *Release) Tasks() []progress.Task {
	tasks := []progress.Task{{Name: "check the inputs", Do: rel.check}}
	for _, p := range rel.o.Platforms {
		tasks = append(tasks, progress.Task{Name: "build the programs for " + p.String(), Do: func(ctx context.Context, s *progress.Step) error {
			return rel.build(ctx, p, s)
		}})
	}
	return append(tasks,
		progress.Task{Name: "pack sources and series", Do: rel.packInputs},
		progress.Task{Name: "pack programs and images", Do: rel.packPrograms},
		progress.Task{Name: "write SBOM, provenance, manifest and sums", Do: rel.finish})
}

// Close removes what a release that failed has left.
func (rel *Release) Close() error { return os.RemoveAll(rel.partial) }

// check reads every input, refuses what would not be reproducible, and makes
// the folders.
func (rel *Release) check(ctx context.Context, s *progress.Step) error {
	ws := rel.ws
	err := errors.Join(
		tools.RequirePrograms(ctx, "git", "bash"),
		toolchain.RequireGo(ctx),
		toolchain.RequireDisk(ws.Work, diskGiB))
	if err != nil {
		return err
	}
	if rel.in, err = readInputs(ctx, ws, rel.o, s); err != nil {
		return err
	}
	v := rel.in.version
	rel.dist = filepath.Join(ws.Dist(), v.String())
	if err := ensureOurs(rel.dist, v); err != nil {
		return err
	}
	s.Sayf("release %s, dated %s", v, rel.in.date.Format("2006-01-02T15:04:05Z"))
	// Left by a release that was killed.
	rel.partial = filepath.Join(ws.Dist(), ".partial-"+v.String())
	rel.out = filepath.Join(rel.partial, "release")
	return errors.Join(os.RemoveAll(rel.partial), os.MkdirAll(rel.out, 0o755))
}

// ensureOurs refuses to replace a folder that is no release of version v.
func ensureOurs(dir string, v Version) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	m, merr := ReadManifest(dir)
	if err != nil || merr != nil || m.Version != v.String() {
		return progress.Refuse(dir+" holds something else than the release "+v.String(), "no such folder, or an earlier "+v.String(), "mv "+dir+" elsewhere")
	}
	return nil
}

// programsDir is where the programs for p are built: where `make up` builds
// them too, for this machine.
func (rel *Release) programsDir(p Platform) string {
	if p == Host() {
		return rel.ws.Components()
	}
	return filepath.Join(rel.ws.Work, "components-"+p.tag())
}

func (rel *Release) build(ctx context.Context, p Platform, s *progress.Step) error {
	dir := rel.programsDir(p)
	for _, src := range rel.in.sources {
		names := p.programs(src.project.Name)
		if len(names) == 0 {
			continue
		}
		if err := Build(ctx, src.project.Tree(), src.stamp, p, s.Log, dir, names...); err != nil {
			return err
		}
		for _, name := range names {
			a, err := sumFile(dir, p.file(name))
			if err != nil {
				return err
			}
			prog := program{Artefact: a, Platform: p.String(), Source: src.project.Name, linked: sortedKeys(src.stamp.linked)}
			if prog.modules, rel.in.goVersion, err = programModules(filepath.Join(dir, p.file(name))); err != nil {
				return err
			}
			rel.in.programs = append(rel.in.programs, prog)
		}
	}
	if rel.in.goVersion != toolchain.GoVersion {
		s.Sayf("built with %s; upstream's release is built with %s, and so are ours: other bytes", rel.in.goVersion, toolchain.GoVersion)
	}
	return nil
}

// finish writes what describes the release, and puts it in its place.
func (rel *Release) finish(_ context.Context, s *progress.Step) error {
	add := func(name string, b []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a, err := writeFile(rel.out, name, b)
		rel.artefacts = append(rel.artefacts, a)
		return err
	}
	b, err := sbom(rel.in)
	if err := add(sbomName, b, err); err != nil {
		return err
	}
	b, err = newProvenance(rel.in, rel.artefacts)
	if err := add(provenanceName, b, err); err != nil {
		return err
	}
	b, err = marshal(newManifest(rel.in, rel.images, slices.Clone(rel.artefacts)))
	if err := add(ManifestName, b, err); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(rel.out, SumsName), sumsFile(rel.artefacts), 0o644); err != nil {
		return err
	}
	if err := replace(rel.out, rel.dist, filepath.Join(rel.partial, "replaced")); err != nil {
		return err
	}
	s.Sayf("%s", rel.dist)
	return nil
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
