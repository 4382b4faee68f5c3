package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// Options of a release. The zero value serves.
type Options struct {
	// Platforms to build for; see [ParsePlatforms]. Empty: its default.
	Platforms []Platform
	// CheckTree refuses a tree that is not the base with the series on it. Nil
	// checks only that no file differs from HEAD.
	CheckTree func(context.Context) error
}

// diskGiB is what a release needs beside the tree and the build cache.
const diskGiB = 4

// release is a release that is being made.
type release struct {
	ws    workspace.Workspace
	o     Options
	stamp Stamp
	in    inputs

	partial string // everything is made here,
	out     string // the release itself in this folder of it,
	dist    string // which becomes this one

	images    []Image
	artefacts []Artefact
}

// Run makes the release of the tree of ws in a folder of its own below dist/,
// named by the version, and returns that folder. A release of ours that is
// there is replaced at the very end; until then, and on any error, it stays as
// it is.
func Run(ctx context.Context, ws workspace.Workspace, o Options, r *progress.Reporter) (string, error) {
	if len(o.Platforms) == 0 {
		var err error
		if o.Platforms, err = ParsePlatforms(""); err != nil {
			return "", err
		}
	}
	rel := &release{ws: ws, o: o}
	defer func() { os.RemoveAll(rel.partial) }()
	tasks := []progress.Task{{Name: "check the inputs", Do: rel.check}}
	for _, p := range o.Platforms {
		tasks = append(tasks, progress.Task{Name: "build the programs for " + p.String(), Do: func(ctx context.Context, s *progress.Step) error {
			return rel.build(ctx, p, s)
		}})
	}
	err := r.Run(ctx, append(tasks,
		progress.Task{Name: "pack source and series", Do: rel.packInputs},
		progress.Task{Name: "pack programs and images", Do: rel.packPrograms},
		progress.Task{Name: "write SBOM, provenance, manifest and sums", Do: rel.finish},
	)...)
	return rel.dist, err
}

// check reads every input, refuses what would not be reproducible, and makes
// the folders.
func (rel *release) check(ctx context.Context, s *progress.Step) error {
	ws := rel.ws
	err := errors.Join(
		toolchain.RequirePrograms("git", "bash"),
		toolchain.RequireGo(ctx),
		toolchain.RequireDisk(ws.Work, diskGiB))
	if err != nil {
		return err
	}
	if rel.o.CheckTree != nil {
		if err := rel.o.CheckTree(ctx); err != nil {
			return err
		}
	}
	if rel.stamp, err = ReadStamp(ctx, ws); err != nil {
		return err
	}
	repo := gitrepo.Open(ws.Tree(), s.Log)
	if rel.stamp.Dirty {
		return progress.Refuse("dirty tree: files in "+ws.Tree()+" differ from its HEAD", "the base with the series, nothing else",
			"git -C "+ws.Tree()+" status; then make export or git -C "+ws.Tree()+" stash --include-untracked")
	}
	if err := checkTargets(ctx, ws.Tree()); err != nil {
		return err
	}
	v := rel.stamp.Version
	in := inputs{version: v, date: rel.stamp.Date, commit: rel.stamp.Commit}
	if in.base, err = baseModules(ws); err != nil {
		return err
	}
	if in.baseTree, err = repo.Tree(ctx, base.Ref); err != nil {
		return fmt.Errorf("tree of the base: %w", err)
	}
	if in.tree, err = repo.Tree(ctx, "HEAD"); err != nil {
		return err
	}
	if in.patches, err = series.Read(ws.Series()); err != nil {
		return err
	}
	for _, p := range rel.o.Platforms {
		in.platforms = append(in.platforms, p.String())
	}
	rel.in = in
	rel.dist = filepath.Join(ws.Dist(), v.String())
	if err := ensureOurs(rel.dist, v); err != nil {
		return err
	}
	s.Sayf("%s: commit %.12s, %d patches, dated %s", v, in.commit, len(in.patches), in.date.Format("2006-01-02T15:04:05Z"))
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
func (rel *release) programsDir(p Platform) string {
	if p == Host() {
		return rel.ws.Components()
	}
	return filepath.Join(rel.ws.Work, "components-"+p.tag())
}

func (rel *release) build(ctx context.Context, p Platform, s *progress.Step) error {
	dir := rel.programsDir(p)
	if err := Build(ctx, rel.ws.Tree(), rel.stamp, p, s.Log, dir, p.programs()...); err != nil {
		return err
	}
	for _, name := range p.programs() {
		a, err := sumFile(dir, p.file(name))
		if err != nil {
			return err
		}
		prog := program{Artefact: a, Platform: p.String()}
		if prog.modules, rel.in.goVersion, err = programModules(filepath.Join(dir, p.file(name))); err != nil {
			return err
		}
		rel.in.programs = append(rel.in.programs, prog)
	}
	if rel.in.goVersion != toolchain.GoVersion {
		s.Sayf("built with %s; upstream's release is built with %s, and so are ours: other bytes", rel.in.goVersion, toolchain.GoVersion)
	}
	return nil
}

func (rel *release) packInputs(ctx context.Context, s *progress.Step) error {
	v, date := rel.stamp.Version, rel.stamp.Date
	source, err := packSource(ctx, rel.ws.Tree(), rel.in.commit, v, rel.partial, rel.out, date, s.Log)
	if err != nil {
		return err
	}
	patches, err := packSeries(ctx, rel.ws, v, rel.out, date)
	if err != nil {
		return err
	}
	rel.artefacts = append(rel.artefacts, source, patches)
	return nil
}

func (rel *release) packPrograms(ctx context.Context, s *progress.Step) error {
	for _, p := range rel.o.Platforms {
		if err := rel.packPlatform(ctx, p, s); err != nil {
			return err
		}
	}
	return nil
}

// packPlatform writes the client tarball of p, and for Linux the node and the
// server tarball, in upstream's layout (build/lib/release.sh).
func (rel *release) packPlatform(ctx context.Context, p Platform, s *progress.Step) error {
	client := tree{}
	if err := rel.addPrograms(client, "kubernetes/client/bin", p, names(clientTargets)); err != nil {
		return err
	}
	if err := rel.pack(ctx, "client", p, client, s); err != nil || p.OS != "linux" {
		return err
	}
	var lists [][]module
	for _, prog := range rel.in.programs {
		if prog.Platform == p.String() {
			lists = append(lists, prog.modules)
		}
	}
	legal, err := licences(ctx, rel.ws.Tree(), union(lists...), s.Log)
	if err != nil {
		return err
	}
	common := tree{}
	for name, m := range legal {
		common["kubernetes/"+name] = m
	}
	common.addBytes("kubernetes/version", []byte(rel.in.version.String()+"\n"))
	if err := common.addFile("kubernetes/"+sourceTarball, filepath.Join(rel.out, sourceTarball), modeFile); err != nil {
		return err
	}

	node := maps.Clone(common)
	if err := rel.addPrograms(node, "kubernetes/node/bin", p, names(nodeTargets, clientTargets)); err != nil {
		return err
	}
	if err := rel.pack(ctx, "node", p, node, s); err != nil {
		return err
	}

	server := maps.Clone(common)
	server["kubernetes/addons"] = member{mode: fs.ModeDir | 0o755}
	if err := rel.addPrograms(server, "kubernetes/server/bin", p, names(serverTargets, clientTargets)); err != nil {
		return err
	}
	images := filepath.Join(rel.partial, "images-"+p.tag())
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(images)
	for _, name := range imagePrograms {
		img, err := packImage(ctx, name, p, rel.in.version, rel.programsDir(p), images, rel.in.date)
		if err != nil {
			return fmt.Errorf("image of %s: %w", name, err)
		}
		rel.images = append(rel.images, img)
		at := "kubernetes/server/bin/" + name
		if err := server.addFile(at+".tar", filepath.Join(images, img.Tarball.Name), modeFile); err != nil {
			return err
		}
		server.addBytes(at+".docker_tag", []byte(rel.in.version.ImageTag()+"\n"))
	}
	return rel.pack(ctx, "server", p, server, s)
}

func (rel *release) addPrograms(t tree, folder string, p Platform, names []string) error {
	for _, n := range names {
		if err := t.addFile(folder+"/"+p.file(n), filepath.Join(rel.programsDir(p), p.file(n)), modeProgram); err != nil {
			return err
		}
	}
	return nil
}

func (rel *release) pack(ctx context.Context, kind string, p Platform, t tree, s *progress.Step) error {
	a, err := t.writeTarGz(ctx, rel.out, "kubernetes-"+kind+"-"+p.tag()+".tar.gz", rel.in.date)
	if err != nil {
		return err
	}
	s.Sayf("%s: %d MB", a.Name, a.Size/1e6)
	rel.artefacts = append(rel.artefacts, a)
	return nil
}

// finish writes what describes the release, and puts it in its place.
func (rel *release) finish(_ context.Context, s *progress.Step) error {
	ldflags := rel.stamp.Ldflags()
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
	b, err = newProvenance(rel.in, ldflags, rel.artefacts)
	if err := add(provenanceName, b, err); err != nil {
		return err
	}
	b, err = marshal(newManifest(rel.in, ldflags, rel.images, slices.Clone(rel.artefacts)))
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
