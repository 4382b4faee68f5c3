// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
)

func (rel *Release) packInputs(ctx context.Context, s *run.Step) error {
	for _, src := range rel.in.sources {
		if err := packSource(ctx, src, rel.partial, rel.out, s.Log); err != nil {
			return err
		}
	}
	return packSeries(ctx, rel.ws, rel.in.version, rel.out, rel.in.date)
}

func (rel *Release) packPrograms(ctx context.Context, s *run.Step) error {
	for _, src := range rel.in.sources {
		for _, a := range products[src.project.Name].archives {
			if err := rel.packArchive(ctx, src, a, s); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
		}
	}
	upstream, err := checkKubeadm(ctx, filepath.Join(rel.ws.Components(), "kubeadm"), rel.in.version, rel.in.images, s.Log)
	for _, image := range upstream {
		s.Sayf("kubeadm takes upstream's %s", image)
	}
	return err
}

func (rel *Release) packArchive(ctx context.Context, src source, a bundle, s *run.Step) error {
	t := files.Tree{}
	if a.full {
		if err := rel.addCommon(ctx, t, a.top, src, s); err != nil {
			return err
		}
	}
	for _, f := range a.folders {
		t[path.Join(a.top, f)] = files.Member{Mode: fs.ModeDir | 0o755}
	}
	bin := path.Join(a.top, a.bin)
	for _, pkg := range a.packages {
		name := path.Base(pkg)
		if err := t.AddFile(path.Join(bin, name), filepath.Join(rel.ws.Components(), name), files.Program); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(rel.partial, "images")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, i := range a.images {
		file := filepath.Join(dir, i.program+".tar")
		reference, digest, err := i.pack(ctx, src.stamp.Version, rel.ws.Components(), file, rel.in.date)
		if err != nil {
			return fmt.Errorf("image of %s: %w", i.program, err)
		}
		rel.in.images[reference] = digest
		if err := t.AddFile(path.Join(bin, i.program+".tar"), file, files.File); err != nil {
			return err
		}
		t.AddBytes(path.Join(bin, i.program+".docker_tag"), []byte(src.stamp.Version.ImageTag()+"\n"))
	}
	name := a.name + "-" + tag + ".tar.gz"
	s.Sayf("%s", name)
	return writeTarGz(ctx, t, filepath.Join(rel.out, name), rel.in.date)
}

// addCommon adds what full archives share: the licences of what is linked into the programs, the
// version and the patched source.
func (rel *Release) addCommon(ctx context.Context, t files.Tree, top string, src source, s *run.Step) error {
	linked := modules{}
	for _, p := range rel.in.programs {
		if p.source == src.project.Name {
			linked.add(p.modules)
		}
	}
	if err := addLicences(ctx, t, path.Join(top, "LICENSES"), src.project.Tree(), linked, s.Log); err != nil {
		return err
	}
	t.AddBytes(path.Join(top, "version"), []byte(src.stamp.Version.String()+"\n"))
	return t.AddFile(path.Join(top, src.tarball()), filepath.Join(rel.out, src.tarball()), files.File)
}
