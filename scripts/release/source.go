package release

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/pack"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// packSource writes the tree at its commit as upstream does (git archive, no top
// folder), so that upstream's own build scripts find the commit and the version
// in it: git fills in the commit's names, among them the tag of the release.
//
// It archives from a repository of its own that borrows the tree's objects: the
// names that git fills in are then the same everywhere, whatever branches and
// tags the tree's repository has.
func packSource(ctx context.Context, src source, tmp, out string, date time.Time, log io.Writer) (Artefact, error) {
	bare := filepath.Join(tmp, src.project.Name+".git")
	objects, err := gitrepo.Open(src.project.Tree(), log).Output(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return Artefact{}, err
	}
	if err := os.MkdirAll(bare, 0o755); err != nil {
		return Artefact{}, err
	}
	repo := gitrepo.Open(bare, log)
	if err := repo.Git(ctx, "init", "--quiet", "--bare", "--template=", "--object-format=sha1", "."); err != nil {
		return Artefact{}, err
	}
	if err := os.MkdirAll(filepath.Join(bare, "objects", "info"), 0o755); err != nil {
		return Artefact{}, err
	}
	if err := os.WriteFile(filepath.Join(bare, "objects", "info", "alternates"), []byte(objects+"\n"), 0o644); err != nil {
		return Artefact{}, err
	}
	tarball := filepath.Join(tmp, "source.tar")
	for _, args := range [][]string{
		{"update-ref", "--no-deref", "HEAD", src.stamp.Commit},
		{"update-ref", "refs/tags/" + src.stamp.Version.String(), src.stamp.Commit},
		{"-c", "core.attributesFile=" + os.DevNull, "archive", "--format=tar", "-o", tarball, "HEAD"},
	} {
		if err := repo.Git(ctx, args...); err != nil {
			return Artefact{}, err
		}
	}
	defer os.Remove(tarball)
	return writeGz(out, src.tarball(), func(w io.Writer) error { return repack(ctx, tarball, w, date) })
}

// repack copies a tarball with our owner, modes and date in the headers, which
// git takes from its settings and its version.
func repack(ctx context.Context, tarball string, w io.Writer, date time.Time) error {
	in, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer in.Close()
	out := tar.NewWriter(w)
	err = pack.EachMember(in, func(h *tar.Header, r io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := &tar.Header{Name: h.Name, Typeflag: h.Typeflag, Linkname: h.Linkname, Size: h.Size, ModTime: date, Mode: int64(pack.File)}
		switch {
		case h.Typeflag == tar.TypeXGlobalHeader:
			// The commit, for git get-tar-commit-id.
			n = &tar.Header{Name: h.Name, Typeflag: h.Typeflag, PAXRecords: h.PAXRecords}
		case h.Typeflag == tar.TypeDir || fs.FileMode(h.Mode)&0o100 != 0:
			n.Mode = int64(pack.Program)
		}
		if err := out.WriteHeader(n); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		_, err := io.Copy(out, r)
		return err
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// seriesTarball holds the broken-out series of every upstream project.
const seriesTarball = "capacityv2-series.tar.gz"

// packSeries writes patches/ and feature-gates.yaml: the listed patches with
// their lists, what an applier checks them with, and the workspaces without which
// the trees do not compile. Other files (an editor's, a rejected hunk) are not part
// of a release.
func packSeries(ctx context.Context, ws workspace.Workspace, v Version, out string, date time.Time) (Artefact, error) {
	top := "capacityv2-series-" + imageTag(v.String())
	t := pack.Tree{}
	projects, err := ws.Projects()
	if err != nil {
		return Artefact{}, err
	}
	for _, p := range projects {
		patches, err := series.List(p.Series())
		if err != nil {
			return Artefact{}, err
		}
		err = errors.Join(
			t.AddFiles(path.Join(top, "patches", p.Name), p.Series(), slices.Concat(patches, []string{series.ListName, workspace.ProjectFile})),
			t.AddOptional(path.Join(top, "patches", p.Name), p.Series(), append([]string{series.LockName, "README.md"}, workspace.GoWorkFiles...)))
		if err != nil {
			return Artefact{}, err
		}
	}
	err = errors.Join(t.AddOptional(top, ws.Root, []string{"feature-gates.yaml", "LICENSE"}),
		t.AddFiles(path.Join(top, "patches"), filepath.Dir(ws.Revision()), []string{filepath.Base(ws.Revision())}))
	if err != nil {
		return Artefact{}, err
	}
	return writeTarGz(ctx, t, out, seriesTarball, date)
}
