package release

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"capacityv2.internal/scripts/pack"
	"capacityv2.internal/scripts/progress"
)

func (rel *Release) packInputs(ctx context.Context, s *progress.Step) error {
	for _, src := range rel.in.sources {
		a, err := packSource(ctx, src, rel.partial, rel.out, rel.in.date, s.Log)
		if err != nil {
			return err
		}
		rel.artefacts = append(rel.artefacts, a)
	}
	a, err := packSeries(ctx, rel.ws, rel.in.version, rel.out, rel.in.date)
	rel.artefacts = append(rel.artefacts, a)
	return err
}

func (rel *Release) packPrograms(ctx context.Context, s *progress.Step) error {
	for _, p := range rel.o.Platforms {
		for _, src := range rel.in.sources {
			if err := rel.packSourcePrograms(ctx, src, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// packSourcePrograms writes the archives that a project has for p.
func (rel *Release) packSourcePrograms(ctx context.Context, src source, p Platform, s *progress.Step) error {
	var common pack.Tree // what full archives share
	for _, a := range p.archives(src.project.Name) {
		t := pack.Tree{}
		if a.full {
			if common == nil {
				var err error
				if common, err = rel.common(ctx, src, p, s); err != nil {
					return err
				}
			}
			for name, m := range common {
				t[path.Join(a.top, name)] = m
			}
		}
		for _, f := range a.folders {
			t[path.Join(a.top, f)] = pack.Member{Mode: fs.ModeDir | 0o755}
		}
		for _, name := range a.programs() {
			if err := t.AddFile(path.Join(a.top, a.bin, p.file(name)), filepath.Join(rel.programsDir(p), p.file(name)), pack.Program); err != nil {
				return err
			}
		}
		if err := rel.packArchive(ctx, src, a, p, t, s); err != nil {
			return err
		}
	}
	return nil
}

// common returns the licences of what is linked into the programs for p, the version
// and the patched source.
func (rel *Release) common(ctx context.Context, src source, p Platform, s *progress.Step) (pack.Tree, error) {
	var lists [][]module
	for _, prog := range rel.in.programs {
		if prog.Platform == p.String() && prog.Source == src.project.Name {
			lists = append(lists, prog.modules)
		}
	}
	t, err := licences(ctx, src.project.Tree(), union(lists...), s.Log)
	if err != nil {
		return nil, err
	}
	t.AddBytes("version", []byte(src.stamp.Version.String()+"\n"))
	return t, t.AddFile(src.tarball(), filepath.Join(rel.out, src.tarball()), pack.File)
}

// packArchive adds the images to t and writes it.
func (rel *Release) packArchive(ctx context.Context, src source, a archive, p Platform, t pack.Tree, s *progress.Step) error {
	name := a.name + "-" + p.tag() + ".tar.gz"
	dir := filepath.Join(rel.partial, "images-"+p.tag())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	v := src.stamp.Version
	for _, i := range a.images {
		img, err := packImage(ctx, i, p, v, rel.programsDir(p), dir, rel.in.date)
		if err != nil {
			return fmt.Errorf("image of %s: %w", i.program, err)
		}
		img.Archive = name
		rel.images = append(rel.images, img)
		at := path.Join(a.top, a.bin, i.program)
		if err := t.AddFile(at+".tar", filepath.Join(dir, img.Tarball.Name), pack.File); err != nil {
			return err
		}
		t.AddBytes(at+".docker_tag", []byte(v.ImageTag()+"\n"))
	}
	artefact, err := writeTarGz(ctx, t, rel.out, name, rel.in.date)
	if err != nil {
		return err
	}
	s.Sayf("%s: %d MB", artefact.Name, artefact.Size/1e6)
	rel.artefacts = append(rel.artefacts, artefact)
	return nil
}
