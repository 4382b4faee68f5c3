package series

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// LockName is the file with the hashes of the base, the patches and the result.
const LockName = "tree.lock"

const lockHeader = "# Hashes that a stranger can check offline. Written by make export, checked by\n# make lint (patches) and make apply (base and result).\n"

// Lock records what the base, the patches and the applied tree have to be.
type Lock struct {
	// Base is the tag of Kubernetes.
	Base string `json:"base"`
	// Without are staging modules that are not among the Go modules. A git checkout has
	// them.
	Without []string `json:"without,omitempty"`
	// BaseCommit, BaseTree, AppliedCommit and AppliedTree are git's names in the
	// tree that is assembled from Go modules.
	BaseCommit    string `json:"baseCommit"`
	BaseTree      string `json:"baseTree"`
	AppliedCommit string `json:"appliedCommit"`
	AppliedTree   string `json:"appliedTree"`
	// TouchedFiles is the SHA-256 over mode, blob and path of every file that
	// the series touches. It holds for a git checkout too.
	TouchedFiles string `json:"touchedFiles"`
	// Patches are the patch files in their order.
	Patches []LockedPatch `json:"patches"`
}

// LockedPatch is a patch file and its SHA-256.
type LockedPatch struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// ReadLock reads the lock in dir.
func ReadLock(dir string) (Lock, error) {
	path := filepath.Join(dir, LockName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Lock{}, run.Refuse(run.Refusal{
			Found:    "no " + path,
			Expected: "the hashes of the series",
			Run:      "git checkout -- " + path + ", or make export",
		})
	}
	if err != nil {
		return Lock{}, err
	}
	var l Lock
	if err := yaml.UnmarshalStrict(b, &l); err != nil {
		return Lock{}, run.Refuse(run.Refusal{
			Found:    path + ": " + err.Error(),
			Expected: "the hashes of the series",
			Run:      "git checkout -- " + path + ", or make export",
		})
	}
	return l, nil
}

func (l Lock) bytes() ([]byte, error) {
	b, err := yaml.Marshal(l)
	return append([]byte(lockHeader), b...), err
}

// newLock computes the lock of the applied tree at HEAD.
func newLock(ctx context.Context, repo gitrepo.Repo, version string, patches []Patch) (Lock, error) {
	l := Lock{Base: version}
	revs, err := repo.Lines(ctx, "rev-parse", base.Ref+"^{commit}", base.Ref+"^{tree}", "HEAD", "HEAD^{tree}")
	if err != nil {
		return l, err
	}
	l.BaseCommit, l.BaseTree, l.AppliedCommit, l.AppliedTree = revs[0], revs[1], revs[2], revs[3]
	if l.Without, err = base.Without(ctx, repo); err != nil {
		return l, err
	}
	if l.TouchedFiles, err = touched(ctx, repo, patches); err != nil {
		return l, err
	}
	for _, p := range patches {
		l.Patches = append(l.Patches, LockedPatch{p.Name, p.SHA256()})
	}
	return l, nil
}

// touched hashes the files at HEAD that the patches touch. A deleted file has
// no line.
func touched(ctx context.Context, repo gitrepo.Repo, patches []Patch) (string, error) {
	lines, err := repo.Lines(ctx, append([]string{"ls-tree", "-r", "--full-tree", "HEAD", "--"}, Paths(patches)...)...)
	if err != nil {
		return "", err
	}
	slices.Sort(lines)
	h := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(h[:]), nil
}

const patchHelp = "git checkout -- patches (they are changed by commits in the tree, then make export)"

// CheckSums compares the patch files with the lock.
func CheckSums(patches []Patch, l Lock) error {
	var have, want []string
	for _, p := range patches {
		have = append(have, p.Name)
	}
	for _, p := range l.Patches {
		want = append(want, p.Name)
	}
	if !slices.Equal(have, want) {
		return run.Refuse(run.Refusal{
			Found:    "the series lists " + strings.Join(have, ", "),
			Expected: strings.Join(want, ", ") + " (" + LockName + ")",
			Run:      patchHelp,
		})
	}
	for _, p := range patches {
		if err := l.checkSum(p); err != nil {
			return err
		}
	}
	return nil
}

// checkSum compares one patch file with its line in the lock, if it has one.
func (l Lock) checkSum(p Patch) error {
	for _, locked := range l.Patches {
		if got := p.SHA256(); locked.Name == p.Name && locked.SHA256 != got {
			return run.Refuse(run.Refusal{
				Found:    "changed patch file " + p.Name + ": its SHA-256 is " + got,
				Expected: locked.SHA256 + " (" + LockName + ")",
				Run:      patchHelp,
			})
		}
	}
	return nil
}

// CheckLock compares the applied tree with the lock: every hash for a tree from
// modules, the touched files for one from a checkout.
func CheckLock(ctx context.Context, repo gitrepo.Repo, l Lock, patches []Patch) error {
	got, err := newLock(ctx, repo, l.Base, patches)
	if err != nil {
		return err
	}
	origin, err := base.OriginOf(ctx, repo)
	if err != nil {
		return err
	}
	checks := []struct{ what, got, want string }{{"touched files", got.TouchedFiles, l.TouchedFiles}}
	if !origin.Checkout {
		checks = append(checks, []struct{ what, got, want string }{
			{"base tree", got.BaseTree, l.BaseTree},
			{"base commit", got.BaseCommit, l.BaseCommit},
			{"applied tree", got.AppliedTree, l.AppliedTree},
			{"applied commit", got.AppliedCommit, l.AppliedCommit},
			{"list of modules that are left out", strings.Join(got.Without, ", "), strings.Join(l.Without, ", ")},
		}...)
	}
	for _, c := range checks {
		if c.got != c.want {
			return run.Refuse(run.Refusal{
				Found:    fmt.Sprintf("tree lock: %s is %s", c.what, c.got),
				Expected: c.want + " (" + LockName + ")",
				Run:      "make export, if the tree is right; make clean and make apply, if the lock is",
			})
		}
	}
	return nil
}
