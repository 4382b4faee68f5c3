package series

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// Exported is the series as its commits say it is.
type Exported struct {
	Patches []Patch
	Lock    Lock
}

// Format turns the commits on the base into patches, without writing them to
// the series' folder.
func Format(ctx context.Context, repo gitrepo.Repo, version string) (Exported, error) {
	var e Exported
	if err := exportable(ctx, repo); err != nil {
		return e, err
	}
	written, err := patchFiles(ctx, repo, "HEAD")
	if err != nil {
		return e, err
	}
	for _, name := range slices.Sorted(maps.Keys(written)) { // they start with the number
		p, err := Parse(name, []byte(written[name]))
		if err != nil {
			return e, err
		}
		e.Patches = append(e.Patches, p)
	}
	e.Lock, err = newLock(ctx, repo, version, e.Patches)
	return e, err
}

// WritePatches writes a patch file for each commit from the base to head into dir.
func WritePatches(ctx context.Context, repo gitrepo.Repo, dir, head string) error {
	return repo.Git(ctx, slices.Concat(formatPatch, []string{"--output-directory", dir, base.Ref + ".." + head})...)
}

// patchFiles returns the patch file of each commit from the base to head, by its name.
func patchFiles(ctx context.Context, repo gitrepo.Repo, head string) (map[string]string, error) {
	tmp, err := os.MkdirTemp("", "capacityv2-export-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := WritePatches(ctx, repo, tmp, head); err != nil {
		return nil, err
	}
	return readPatches(tmp)
}

// readPatches returns the patch files in dir by their names, whether they are listed or not.
func readPatches(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	content := map[string]string{}
	for _, path := range paths {
		b, e := os.ReadFile(path)
		err = errors.Join(err, e)
		content[filepath.Base(path)] = string(b)
	}
	return content, err
}

// exportable refuses an empty range, a half-applied one, merges and a dirty tree.
func exportable(ctx context.Context, repo gitrepo.Repo) error {
	if err := ensureCommitted(ctx, repo); err != nil {
		return err
	}
	if err := repo.Git(ctx, "merge-base", "--is-ancestor", base.Ref, "HEAD"); err != nil {
		return run.Refuse(run.Refusal{
			Found:    "HEAD of " + repo.Dir + " is not on the base",
			Expected: "commits on " + base.Ref,
			Run:      "git -C " + repo.Dir + " rebase " + base.Ref,
		})
	}
	commits, err := repo.Lines(ctx, "rev-list", "--parents", base.Ref+"..HEAD")
	merges := slices.DeleteFunc(slices.Clone(commits), func(line string) bool { return strings.Count(line, " ") < 2 })
	switch {
	case err != nil:
		return err
	case len(merges) > 0:
		return run.Refuse(run.Refusal{
			Found:    fmt.Sprintf("%d merge commits on the base", len(merges)),
			Expected: "one commit per patch",
			Run:      "git -C " + repo.Dir + " rebase " + base.Ref,
		})
	case len(commits) == 0:
		return run.Refuse(run.Refusal{
			Found:    "empty range: no commit on the base in " + repo.Dir,
			Expected: "the series applied",
			Run:      "make apply",
		})
	}
	return nil
}

// Export writes the commits as patch files, and moves HEAD to the commits that
// applying these files makes. A file whose bytes do not change is not touched.
// It returns the names of what was written or removed.
func Export(ctx context.Context, repo gitrepo.Repo, dir, version string) ([]string, error) {
	holds, err := base.OriginOf(ctx, repo)
	if err != nil {
		return nil, err
	}
	if want := (base.Origin{Version: version}); holds != want {
		git := "git -C " + repo.Dir + " "
		return nil, run.Refuse(run.Refusal{
			Found:    "the tree holds " + holds.String(),
			Expected: want.String() + ", whose hashes the lock records",
			Run:      git + "format-patch -o DIR " + base.ExportedRef + ".., " + git + "reset --hard " + base.ExportedRef + ", make clean && make apply without KUBERNETES_SRC, " + git + "am --3way DIR/*",
		})
	}
	if err := checkFiles(ctx, repo, dir, version); err != nil {
		return nil, err
	}
	e, err := canonical(ctx, repo, version)
	if err != nil {
		return nil, err
	}
	changed, err := e.write(dir)
	if err != nil {
		return nil, err
	}
	return changed, setApplied(ctx, repo, e.Patches, e.Lock.AppliedCommit)
}

// checkFiles refuses to export over patch files that did not come from the tree, and from a tree in which only the
// first part of the series is applied: it would delete the rest.
func checkFiles(ctx context.Context, repo gitrepo.Repo, dir, version string) error {
	if lock, err := ReadLock(dir); err == nil && lock.Base != version {
		return nil // a rebase has made the tree, and the files are of the base before
	}
	if _, err := os.Stat(filepath.Join(dir, ListName)); errors.Is(err, os.ErrNotExist) {
		return nil // the first export
	}
	patches, err := Read(dir)
	if err != nil {
		return err
	}
	if err := checkPulled(ctx, repo, dir, patches); err != nil {
		return err
	}
	commits, err := Prefixes(ctx, repo)
	if err != nil {
		return err
	}
	same := func(c Prefix, p Patch) bool { return c.Subject == p.Subject }
	if len(commits) < len(patches) && slices.EqualFunc(commits, patches[:len(commits)], same) {
		git := "git -C " + repo.Dir + " "
		return run.Refuse(run.Refusal{
			Found:    fmt.Sprintf("half-applied range: %s has only the first %d of %d patches", repo.Dir, len(commits), len(patches)),
			Expected: "the whole series, or commits of your own on it",
			Run:      git + "branch mine, " + git + "reset --hard " + base.ExportedRef + ", then make apply; to drop the last patches, remove them from " + filepath.Join(dir, ListName),
		})
	}
	return nil
}

// checkPulled refuses patch files that are not those that the tree was made from. Where the tree has none, [Apply] was
// killed.
func checkPulled(ctx context.Context, repo gitrepo.Repo, dir string, patches []Patch) error {
	was, err := patchFiles(ctx, repo, base.ExportedRef)
	if err != nil || len(was) == 0 {
		return err
	}
	found, err := readPatches(dir)
	if err != nil {
		return err
	}
	all := maps.Clone(found)
	maps.Copy(all, was)
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return found[name] == was[name] })
	if len(others) == 0 {
		return nil
	}
	if listed, err := alreadyApplied(ctx, repo, patches, base.ExportedRef); err != nil {
		return err
	} else if listed {
		return notListed(dir, others[0])
	}
	if err := ensureCommitted(ctx, repo); err != nil {
		return err
	}
	exported, err := repo.Rev(ctx, base.ExportedRef)
	if err != nil {
		return err
	}
	help := "make apply"
	if EnsureSafe(ctx, repo) != nil {
		git := "git -C " + repo.Dir + " "
		help = git + "branch mine, " + git + "reset --hard " + exported + ", make apply, " + git + "rebase --onto HEAD " + exported +
			" mine, " + git + "checkout -B " + base.Branch + ", " + git + "branch -d mine, " + git + "rebase -i " + base.Ref +
			" to make a commit that changes a patch a fixup of it, make export"
	}
	return run.Refuse(run.Refusal{
		Found:    "patch files changed since the tree was made: " + strings.Join(others, ", "),
		Expected: "those that it was made from: export would undo a git pull",
		Run:      help + "; or git checkout -- " + dir + ", if they were edited by hand or an export was killed",
	})
}

// write brings dir to the exported state.
func (e Exported) write(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names, changed []string
	keep := map[string]bool{}
	put := func(name string, b []byte) error {
		written, err := files.Update(filepath.Join(dir, name), b)
		if written {
			changed = append(changed, name)
		}
		return err
	}
	for _, p := range e.Patches {
		names = append(names, p.Name)
		keep[p.Name] = true
		if err := put(p.Name, p.Bytes); err != nil {
			return nil, err
		}
	}
	if err := put(ListName, listBytes(names)); err != nil {
		return nil, err
	}
	lock, err := e.Lock.bytes()
	if err != nil {
		return nil, err
	}
	if err := put(LockName, lock); err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, path := range old {
		if name := filepath.Base(path); !keep[name] {
			changed = append(changed, name+" (removed)")
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// RoundTrip applies the series in dir to the base of the tree once more, in a work tree at again, so that a tree that
// somebody kept proves nothing, and compares its export with the files.
func RoundTrip(ctx context.Context, tree gitrepo.Repo, dir, again string, s *run.Step) error {
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
	_, changed, err := applyAgain(ctx, tree, again, lock.Base, patches, func(tmp string) error { return os.CopyFS(tmp, os.DirFS(dir)) })
	if err != nil {
		return err
	}
	if err := CheckLock(ctx, gitrepo.Open(again, tree.Log), lock, patches); err != nil {
		return err
	}
	if len(changed) > 0 {
		return run.Refuse(run.Refusal{
			Found:    "round trip: the export of the applied series differs in " + strings.Join(changed, ", "),
			Expected: "the same bytes",
			Run:      "make export",
		})
	}
	return nil
}

// applyAgain applies patches to the base of the tree once more, in a work tree at again, and compares their export with
// the files that fill writes. It returns the export, and the names of what differs.
func applyAgain(ctx context.Context, tree gitrepo.Repo, again, version string, patches []Patch, fill func(dir string) error) (
	e Exported, changed []string, err error) {
	tmp, err := os.MkdirTemp("", "capacityv2-again-")
	if err != nil {
		return e, nil, err
	}
	defer os.RemoveAll(tmp)
	if err := fill(tmp); err != nil {
		return e, nil, err
	}
	work := gitrepo.Open(again, tree.Log)
	if err := base.AddWorktree(ctx, tree, work.Dir, base.Ref); err != nil {
		return e, nil, err
	}
	if err := Am(ctx, work, tmp, patches); err != nil {
		return e, nil, err
	}
	if e, err = Format(ctx, work, version); err != nil {
		return e, nil, err
	}
	changed, err = e.write(tmp)
	return e, changed, err
}

// canonical formats the commits on the base, and replaces them with those that
// applying the patches makes: the lock records the names that everybody gets,
// not those of whoever exports. HEAD moves once, when all is made, so that a kill loses nothing.
func canonical(ctx context.Context, repo gitrepo.Repo, version string) (e Exported, err error) {
	theirs, err := Format(ctx, repo, version)
	if err != nil {
		return e, err
	}
	if applied, err := alreadyApplied(ctx, repo, theirs.Patches, theirs.Lock.AppliedCommit); err != nil || applied {
		return theirs, err
	}
	again := repo.Dir + "-export"
	defer func() { _ = repo.Git(context.WithoutCancel(ctx), "worktree", "remove", "--force", again) }()
	e, changed, err := applyAgain(ctx, repo, again, version, theirs.Patches, func(tmp string) error {
		_, err := theirs.write(tmp)
		return err
	})
	if err != nil {
		return e, err
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { return name == LockName })
	if len(changed) > 0 || e.Lock.AppliedTree != theirs.Lock.AppliedTree {
		return e, run.Refuse(run.Refusal{
			Found:    "applying the exported patches gives other patches or another tree than the commits in " + repo.Dir,
			Expected: "the same",
			Run:      "git -C " + repo.Dir + " log " + base.Ref + ".. to look for odd commit messages, such as a line that starts with ---",
		})
	}
	// Unless somebody has committed meanwhile. The trees are equal.
	return e, repo.Git(ctx, "update-ref", "HEAD", e.Lock.AppliedCommit, theirs.Lock.AppliedCommit)
}
