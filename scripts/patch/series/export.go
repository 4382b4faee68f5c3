// SPDX-License-Identifier: Apache-2.0

package series

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// formatPatch makes bytes that depend on the commits only:
//   - zero-commit, no-signature: no commit name and no git version;
//   - full-index, binary: blob names do not shorten with the repository's size;
//   - no-renames, a fixed algorithm, prefixes and context: no user setting;
//   - stat=100: its width follows the terminal otherwise;
//   - compression=0: binary hunks are zlib data, which differ between zlib
//     libraries unless they are stored.
var formatPatch = []string{
	"-c", "core.compression=0", "-c", "core.looseCompression=0", "format-patch", "--quiet", "--zero-commit", "--no-signature", "--no-numbered", "--full-index", "--binary",
	"--no-renames", "--diff-algorithm=myers", "--no-indent-heuristic", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/",
	"--stat=100", "--no-attach", "--no-thread", "--no-cover-letter", "--no-base", "--no-notes", "--no-to", "--no-cc",
	"--no-add-header", "--subject-prefix=PATCH", "--suffix=.patch", "--filename-max-length=64",
}

// Export is the series as the commits of a tree say it is.
type Export struct {
	Patches []Patch
	Lock    Lock
}

// format turns the commits on the base into patches.
func format(ctx context.Context, repo gitrepo.Repo, version string) (e Export, err error) {
	if err := exportable(ctx, repo); err != nil {
		return e, err
	}
	tmp, err := os.MkdirTemp("", "capacityv2-export-")
	if err != nil {
		return e, err
	}
	defer os.RemoveAll(tmp)
	if err := repo.Git(ctx, slices.Concat(formatPatch, []string{"--output-directory", tmp, base.Ref + "..HEAD"})...); err != nil {
		return e, err
	}
	paths, err := filepath.Glob(filepath.Join(tmp, "*.patch")) // sorted, and they start with the number
	if err != nil {
		return e, err
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return e, err
		}
		p, err := Parse(filepath.Base(path), b)
		if err != nil {
			return e, err
		}
		e.Patches = append(e.Patches, p)
	}
	e.Lock, err = newLock(ctx, repo, version)
	return e, err
}

// exportable refuses an empty range, a half-applied one, merges and a dirty tree.
func exportable(ctx context.Context, repo gitrepo.Repo) error {
	if err := ensureCommitted(ctx, repo); err != nil {
		return err
	}
	if err := repo.Git(ctx, "merge-base", "--is-ancestor", base.Ref, "HEAD"); err != nil {
		return run.Refuse("HEAD of "+repo.Dir+" is not on the base", "commits on "+base.Ref, "git -C "+repo.Dir+" rebase "+base.Ref)
	}
	commits, err := repo.Lines(ctx, "rev-list", "--parents", base.Ref+"..HEAD")
	merges := slices.DeleteFunc(slices.Clone(commits), func(line string) bool { return strings.Count(line, " ") < 2 })
	switch {
	case err != nil:
		return err
	case len(merges) > 0:
		return run.Refuse(fmt.Sprintf("%d merge commits on the base", len(merges)), "one commit per patch", "git -C "+repo.Dir+" rebase "+base.Ref)
	case len(commits) == 0:
		return run.Refuse("empty range: no commit on the base in "+repo.Dir, "the series applied", "make apply")
	}
	return nil
}

// Prepare makes the patch files of the commits in the tree, and moves HEAD to the commits that applying them makes. It
// writes no file. Patch files that changed while the tree has no commits of its own are put on the base first.
func Prepare(ctx context.Context, repo gitrepo.Repo, dir, version string, rules Rules, s *run.Step) (e Export, err error) {
	holds, err := base.OriginOf(ctx, repo)
	if err != nil {
		return e, err
	}
	if want := (base.Origin{Version: version}); holds != want {
		git := "git -C " + repo.Dir + " "
		return e, run.Refuse("the tree holds "+holds.String(), want.String()+", whose hashes the lock records",
			git+"format-patch -o DIR "+base.ExportedRef+".., "+git+"reset --hard "+base.ExportedRef+
				", make clean && make apply without KUBERNETES_SRC, "+git+"am --3way DIR/*")
	}
	if _, err := os.Stat(filepath.Join(dir, ListName)); !errors.Is(err, os.ErrNotExist) { // not the first export
		files, err := storeFiles(ctx, repo, dir)
		if err != nil {
			return e, err
		}
		if !files.ownCommits {
			err = files.apply(ctx, repo, dir, s)
		} else if lock, errLock := ReadLock(dir); errLock != nil || lock.Base == version { // another one is of before a rebase
			err = ensureWhole(ctx, repo, dir, files.patches)
		}
		if err != nil {
			return e, err
		}
	}
	if e, err = format(ctx, repo, version); err != nil {
		return e, err
	}
	if err := errors.Join(lintPatches(e.Patches, rules), e.ensureKnown(ctx, repo, dir)); err != nil {
		return e, err
	}
	return e.canonical(ctx, repo)
}

// ensureWhole refuses to export a tree in which only the first part of the series is applied: it would delete the others.
func ensureWhole(ctx context.Context, repo gitrepo.Repo, dir string, patches []Patch) error {
	commits, err := Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	same := func(c Prefix, p Patch) bool { return c.Subject == p.Subject }
	if len(commits) < len(patches) && slices.EqualFunc(commits, patches[:len(commits)], same) {
		return run.Refuse(fmt.Sprintf("half-applied range: %s has only the first %d of %d patches", repo.Dir, len(commits), len(patches)),
			"the whole series, or commits of your own on it", "git -C "+repo.Dir+" reset --hard "+base.ExportedRef+
				", then make apply; to drop the last patches, remove them from "+filepath.Join(dir, ListName)+" before")
	}
	return nil
}

// ensureKnown refuses to overwrite or remove a patch file whose bytes git does not have, neither in the tree's repository,
// where each file is that was applied or exported, nor in ours.
func (e Export) ensureKnown(ctx context.Context, repo gitrepo.Repo, dir string) error {
	present, err := patchFiles(dir)
	for _, path := range present {
		i := slices.IndexFunc(e.Patches, func(p Patch) bool { return p.Name == filepath.Base(path) })
		b, errRead := os.ReadFile(path)
		err = errors.Join(err, errRead)
		if (i < 0 || !bytes.Equal(b, e.Patches[i].Bytes)) && !gitHas(ctx, path, repo, gitrepo.Open(dir, repo.Log)) {
			err = errors.Join(err, notListed(path))
		}
	}
	return err
}

// Write brings dir to the exported state. A file whose bytes do not change is not touched. It returns the names of what
// was written or removed.
func (e Export) Write(ctx context.Context, repo gitrepo.Repo, dir string) ([]string, error) {
	changed, err := e.writeFiles(dir)
	if err != nil {
		return nil, err
	}
	folder, err := storeFolder(ctx, repo, e.Patches)
	if err != nil {
		return nil, err
	}
	return changed, setExported(ctx, repo, e.Lock.AppliedCommit, folder)
}

func (e Export) writeFiles(dir string) ([]string, error) {
	lock, err := e.Lock.bytes()
	if err != nil {
		return nil, err
	}
	changed, err := writeFiles(dir, e.Patches)
	if err != nil {
		return nil, err
	}
	if written, err := files.Update(filepath.Join(dir, LockName), lock); err != nil {
		return nil, err
	} else if written {
		changed = append(changed, LockName)
	}
	present, err := patchFiles(dir)
	if err != nil {
		return nil, err
	}
	names := patchNames(e.Patches)
	for _, path := range present {
		if name := filepath.Base(path); !slices.Contains(names, name) {
			changed = append(changed, name+" (removed)")
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// RoundTrip applies the series in dir to the base of the tree once more, in a work tree at at, so that a tree that
// somebody kept proves nothing, and compares its export with the files.
func RoundTrip(ctx context.Context, tree gitrepo.Repo, dir, at string, s *run.Step) error {
	patches, err := Read(dir)
	if err != nil {
		return err
	}
	lock, err := ReadLock(dir)
	if err != nil {
		return err
	}
	origin, err := base.OriginOf(ctx, tree)
	if err != nil {
		return err
	}
	if origin.Checkout {
		s.Sayf("the tree comes from a checkout: only the touched files are compared")
		return CheckLock(ctx, tree, lock, patches)
	}
	_, changed, err := applyElsewhere(ctx, tree, at, lock.Base, patches, func(tmp string) error { return os.CopyFS(tmp, os.DirFS(dir)) })
	if err != nil {
		return err
	}
	if err := CheckLock(ctx, gitrepo.Open(at, tree.Log), lock, patches); err != nil {
		return err
	}
	if len(changed) > 0 {
		return run.Refuse("round trip: the export of the applied series differs in "+strings.Join(changed, ", "), "the same bytes", "make export")
	}
	return nil
}

// applyElsewhere applies patches to the base of the tree once more, in a work tree at another place, and compares their
// export with the files that fill writes. It returns the export, and the names of what differs.
func applyElsewhere(ctx context.Context, tree gitrepo.Repo, at, version string, patches []Patch, fill func(dir string) error) (
	e Export, changed []string, err error) {
	tmp, err := os.MkdirTemp("", "capacityv2-files-")
	if err != nil {
		return e, nil, err
	}
	defer os.RemoveAll(tmp)
	if err := fill(tmp); err != nil {
		return e, nil, err
	}
	work, err := amElsewhere(ctx, tree, at, tmp, patches)
	if err != nil {
		return e, nil, err
	}
	if e, err = format(ctx, work, version); err != nil {
		return e, nil, err
	}
	changed, err = e.writeFiles(tmp)
	return e, changed, err
}

// amElsewhere puts patches on the base of the tree, in a work tree at another place.
func amElsewhere(ctx context.Context, tree gitrepo.Repo, at, dir string, patches []Patch) (gitrepo.Repo, error) {
	work := gitrepo.Open(at, tree.Log)
	if err := base.AddWorktree(ctx, tree, work.Dir, base.Ref); err != nil {
		return work, err
	}
	stopped, err := am(ctx, work, dir, patches)
	if stopped != "" {
		err = run.Refuse(stopped, "patch files that apply to the base of "+tree.Dir, "git log -- "+dir)
	}
	return work, err
}

// canonical replaces the commits on the base with those that applying the patches makes: the lock records the names that
// everybody gets, not those of whoever exports. HEAD moves once, when all is made, so that a kill loses nothing.
func (e Export) canonical(ctx context.Context, repo gitrepo.Repo) (Export, error) {
	folder, err := storeFolder(ctx, repo, e.Patches)
	if err != nil {
		return e, err
	}
	own, err := hasOwnCommits(ctx, repo)
	if was, errRev := repo.Rev(ctx, filesRef); err != nil || !own && errRev == nil && was == folder {
		return e, err
	}
	at := repo.Dir + "-export"
	defer removeWorktree(ctx, repo, at)
	c, changed, err := applyElsewhere(ctx, repo, at, e.Lock.Base, e.Patches, func(tmp string) error {
		_, err := e.writeFiles(tmp)
		return err
	})
	if err != nil {
		return e, err
	}
	treeBefore, errBefore := repo.Tree(ctx, e.Lock.AppliedCommit)
	tree, err := repo.Tree(ctx, c.Lock.AppliedCommit)
	if err := errors.Join(errBefore, err); err != nil {
		return e, err
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { return name == LockName })
	if len(changed) > 0 || tree != treeBefore {
		return e, run.Refuse("applying the exported patches gives other patches or another tree than the commits in "+repo.Dir,
			"the same", "git -C "+repo.Dir+" log "+base.Ref+".. to look for odd commit messages, such as a line that starts with ---")
	}
	// Unless somebody has committed meanwhile. The trees are equal.
	return c, repo.Git(ctx, "update-ref", "HEAD", c.Lock.AppliedCommit, e.Lock.AppliedCommit)
}

func removeWorktree(ctx context.Context, repo gitrepo.Repo, dir string) {
	_ = repo.Git(context.WithoutCancel(ctx), "worktree", "remove", "--force", dir)
}
