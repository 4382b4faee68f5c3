// SPDX-License-Identifier: Apache-2.0

package series

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// LockName is the file with git's names of the base and the result.
const LockName = "tree.lock"

const lockHeader = "# Git's names of the base and of the result, which anybody gets offline. Written by make export, checked by make apply.\n"

// Lock records what the base and the applied tree have to be, where they are assembled from Go modules. The name of a
// commit stands for all files and for all commits before it.
type Lock struct {
	// Base is the tag of upstream's.
	Base string `json:"base"`
	// Without are staging modules that are not among the Go modules. A git checkout has
	// them.
	Without       []string `json:"without,omitempty"`
	BaseCommit    string   `json:"baseCommit"`
	AppliedCommit string   `json:"appliedCommit"`
}

// ReadLock reads the lock in dir.
func ReadLock(dir string) (l Lock, err error) {
	path := filepath.Join(dir, LockName)
	b, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(b, &l)
	} else if !errors.Is(err, os.ErrNotExist) {
		return l, err
	}
	if err != nil { // such as the marks of a merge
		return Lock{}, run.Refuse(path+" cannot be read: "+err.Error(), "git's names of the base and the result of the patch files", "make export")
	}
	return l, nil
}

func (l Lock) bytes() ([]byte, error) {
	b, err := yaml.Marshal(l)
	return append([]byte(lockHeader), b...), err
}

// newLock computes the lock of the applied tree at HEAD.
func newLock(ctx context.Context, repo gitrepo.Repo, version string) (Lock, error) {
	l := Lock{Base: version}
	revs, err := repo.Lines(ctx, "rev-parse", base.Ref+"^{commit}", "HEAD")
	if err != nil {
		return l, err
	}
	l.BaseCommit, l.AppliedCommit = revs[0], revs[1]
	l.Without, err = base.Without(ctx, repo)
	return l, err
}

// checkBase compares the base of a tree with the lock, before patches are put on it.
func (l Lock) checkBase(ctx context.Context, repo gitrepo.Repo) error {
	commit, err := repo.Rev(ctx, base.Ref)
	if err == nil && commit != l.BaseCommit {
		err = run.Refuse("the base in "+repo.Dir+" is the commit "+commit,
			l.BaseCommit+" ("+LockName+")", "make clean, then make apply; if that says the same, make export")
	}
	return err
}

// CheckLock compares the applied tree in repo with the lock. A base from a checkout has other commits: there, it compares
// the patches that they are with the files, which name each blob.
func CheckLock(ctx context.Context, repo gitrepo.Repo, l Lock, patches []Patch) error {
	origin, err := base.OriginOf(ctx, repo)
	if err != nil {
		return err
	}
	if origin.Checkout {
		e, err := format(ctx, repo, l.Base)
		if err == nil && !slices.EqualFunc(e.Patches, patches, func(a, b Patch) bool { return bytes.Equal(a.Bytes, b.Bytes) }) {
			err = run.Refuse("on the checkout in "+repo.Dir+", the patch files give others", "the same", "make clean, then make apply without KUBERNETES_SRC")
		}
		return err
	}
	got, err := newLock(ctx, repo, l.Base)
	if err == nil && !reflect.DeepEqual(got, l) {
		err = run.Refuse(LockName+" is of another series: the patch files give the commit "+got.AppliedCommit,
			l.AppliedCommit+", or "+LockName+" written anew", "make export")
	}
	return err
}
