package series

import (
	"context"
	"os"
	"slices"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
)

// canonical formats the commits on the base, and replaces them with those that
// applying the patches makes: the lock records the names that everybody gets,
// not those of whoever exports. HEAD is back where it was on failure.
func canonical(ctx context.Context, repo gitrepo.Repo, version string) (e Exported, err error) {
	theirs, err := Format(ctx, repo, version)
	if err != nil {
		return e, err
	}
	tmp, err := os.MkdirTemp("", "capacityv2-canonical-")
	if err != nil {
		return e, err
	}
	defer os.RemoveAll(tmp)
	if _, err := theirs.write(tmp); err != nil {
		return e, err
	}
	defer func() {
		if err == nil {
			return
		}
		// Even after an interrupt, the commits come back.
		_ = repo.Git(context.WithoutCancel(ctx), "reset", "--quiet", "--hard", theirs.Lock.AppliedCommit)
	}()
	if err := Am(ctx, repo, tmp, theirs.Patches); err != nil {
		return e, err
	}
	if e, err = Format(ctx, repo, version); err != nil {
		return e, err
	}
	same := slices.EqualFunc(e.Patches, theirs.Patches, func(a, b Patch) bool { return a.SHA256() == b.SHA256() })
	if !same || e.Lock.AppliedTree != theirs.Lock.AppliedTree {
		return e, progress.Refuse("applying the exported patches gives other patches or another tree than the commits in "+repo.Dir, "the same",
			"git -C "+repo.Dir+" log "+base.Ref+".. to look for odd commit messages, such as a line that starts with ---")
	}
	return e, nil
}
