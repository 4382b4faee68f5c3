// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// filesRef is a folder in the tree's repository: the patch files that [base.ExportedRef] was made from, with their list. At the
// base, it is those that are being put on it.
const filesRef = "refs/capacityv2/files"

// stored are the listed patch files, with what the tree has to do with them.
type stored struct {
	patches []Patch
	// folder is git's name of the files and their order, in the repository of the tree.
	folder string
	// current says that what was exported was made from them, ownCommits that HEAD is not what was exported.
	current, ownCommits bool
}

// storeFiles reads the patch files, and stores them in the tree's repository. It refuses other files than those under
// commits that are not exported.
func storeFiles(ctx context.Context, repo gitrepo.Repo, dir string) (f stored, err error) {
	if err := ensureCommitted(ctx, repo); err != nil {
		return f, err
	}
	if f.patches, err = Read(dir); err != nil {
		return f, err
	}
	if f.folder, err = storeFolder(ctx, repo, f.patches); err != nil {
		return f, err
	}
	was, err := repo.Rev(ctx, filesRef)
	f.current = err == nil && was == f.folder
	if f.ownCommits, err = hasOwnCommits(ctx, repo); err != nil || !f.ownCommits || f.current {
		return f, err
	}
	names, err := repo.Lines(ctx, "diff-tree", "--name-only", filesRef, f.folder)
	if err != nil { // the tree was made by an earlier release of the tooling
		names = []string{"which ones is not known"}
	}
	return f, run.Refuse("patch files changed since the tree was made: "+strings.Join(names, ", ")+"; and "+repo.Dir+" has commits that are not exported",
		"one of both: export would undo a git pull", "make apply REBASE=1, which puts the commits on the patch files; then make export")
}

// storeFolder stores patch files and their order, and returns git's name of the folder.
func storeFolder(ctx context.Context, repo gitrepo.Repo, patches []Patch) (string, error) {
	tmp, err := os.MkdirTemp("", "capacityv2-files-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if _, err := writeFiles(tmp, patches); err != nil {
		return "", err
	}
	names := append(patchNames(patches), ListName)
	args := []string{"hash-object", "-w", "--no-filters", "--"}
	for _, name := range names {
		args = append(args, filepath.Join(tmp, name))
	}
	blobs, err := repo.Lines(ctx, args...)
	if err != nil {
		return "", err
	}
	var folder strings.Builder
	for i, blob := range blobs {
		fmt.Fprintf(&folder, "100644 blob %s\t%s\n", blob, names[i])
	}
	return repo.OutputOf(ctx, folder.String(), "mktree")
}

// setExported records, in one step, that a commit is made from the patch files that are stored as a folder.
func setExported(ctx context.Context, repo gitrepo.Repo, commit, folder string) error {
	_, err := repo.OutputOf(ctx, refUpdates(commit, folder), "update-ref", "--stdin")
	return err
}

func refUpdates(commit, folder string) string {
	return fmt.Sprintf("update %s %s\nupdate %s %s\n", base.ExportedRef, commit, filesRef, folder)
}

// gitHas reports whether one of the repositories has the bytes of a file, so that nothing is lost with it.
func gitHas(ctx context.Context, path string, repos ...gitrepo.Repo) bool {
	for _, repo := range repos {
		blob, err := repo.Output(ctx, "hash-object", "--no-filters", path)
		if err == nil && repo.Git(ctx, "cat-file", "-e", blob) == nil {
			return true
		}
	}
	return false
}
