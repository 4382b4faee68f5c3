// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/series"
)

// packSource writes the tree at its commit as upstream does (git archive, no top
// folder), so that upstream's own build scripts find the commit and the version
// in it: git fills in the commit's names, among them the tag of the release.
//
// It archives from a repository of its own that borrows the tree's objects: the
// names that git fills in are then the same everywhere, whatever branches and
// tags the tree's repository has.
func packSource(ctx context.Context, src source, tmp, out string, log io.Writer) error {
	objects, err := src.project.Repo(log).Output(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	bare := filepath.Join(tmp, src.project.Name+".git")
	tarball := filepath.Join(tmp, "source.tar")
	defer os.Remove(tarball)
	repo := gitrepo.Open(tmp, log)
	if err := repo.Git(ctx, "init", "--quiet", "--bare", "--template=", "--object-format=sha1", bare); err != nil {
		return err
	}
	info := filepath.Join(bare, "objects", "info")
	if err := errors.Join(os.MkdirAll(info, 0o755), os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o644)); err != nil {
		return err
	}
	repo.Dir = bare
	err = repo.GitAll(ctx, []string{"update-ref", "--no-deref", "HEAD", src.stamp.Commit},
		[]string{"update-ref", "refs/tags/" + src.stamp.Version.String(), src.stamp.Commit},
		[]string{"-c", "core.attributesFile=" + os.DevNull, "-c", "tar.umask=0022", "archive", "--format=tar", "-o", tarball, "HEAD"})
	if err != nil {
		return err
	}
	return writeGz(filepath.Join(out, src.tarball()), func(w io.Writer) error { return files.Copy(w, tarball) })
}

// seriesTarball holds the broken-out series of every upstream project.
const seriesTarball = "capacityv2-series.tar.gz"

// packSeries writes patches/ and feature-gates.yaml: the listed patches with
// their lists and sums, what an applier checks them with, and the workspaces without which
// the trees do not compile. Other files (an editor's, a rejected hunk) are not part
// of a release.
func packSeries(ctx context.Context, ws workspace.Workspace, v Version, out string, date time.Time) error {
	top := "capacityv2-series-" + imageTag(v.String())
	t := files.Tree{}
	projects, err := ws.Projects()
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, p := range projects {
		patches, err := series.List(p.Series())
		for _, patch := range patches {
			s, errSum := sum(filepath.Join(p.Series(), patch))
			sums[path.Join("patches", p.Name, patch)], err = s, errors.Join(err, errSum)
		}
		if err != nil {
			return err
		}
		err = errors.Join(
			t.AddFiles(path.Join(top, "patches", p.Name), p.Series(), slices.Concat(patches, []string{series.ListName, workspace.ProjectFile})),
			t.AddOptional(path.Join(top, "patches", p.Name), p.Series(), append([]string{series.LockName, "README.md"}, workspace.GoWorkFiles...)))
		if err != nil {
			return err
		}
	}
	t.AddBytes(path.Join(top, sumsName), sumsList(sums))
	err = errors.Join(t.AddOptional(top, ws.Root, []string{workspace.GatesFile, "LICENSE"}),
		t.AddFiles(path.Join(top, "patches"), filepath.Dir(ws.Revision()), []string{filepath.Base(ws.Revision())}))
	if err != nil {
		return err
	}
	return writeTarGz(ctx, t, filepath.Join(out, seriesTarball), date)
}
