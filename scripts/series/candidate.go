package series

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
)

// CheckCandidate refuses a file that is no patch.
func CheckCandidate(ctx context.Context, file string) error {
	const want, help = "the change of a pull request, as git format-patch or git diff writes it", "git diff <base>...<branch> >FILE in a checkout of upstream"
	if _, err := os.Stat(file); err != nil {
		return run.Refuse("no patch file: "+err.Error(), want, help)
	}
	if err := gitrepo.Open(filepath.Dir(file), nil).Git(ctx, "apply", "--numstat", filepath.Base(file)); err != nil {
		return run.Refuse(file+" is no patch: "+complaint(err), want, help)
	}
	return nil
}

// AddCandidate makes a change that upstream may take a part of the base: HEAD is then the
// base with the patch file. The base stays as it is if the file does not apply.
func AddCandidate(ctx context.Context, repo gitrepo.Repo, file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := toBase(ctx, repo); err != nil {
		return err
	}
	if err := repo.Git(ctx, "apply", "--index", "--whitespace=nowarn", abs); err != nil {
		return run.Refuse(file+" does not apply to the base: "+complaint(err), "a change for this base",
			"BASE=<the tag that the change is for>, or rebase the change")
	}
	return repo.GitAll(ctx, []string{"commit", "--quiet", "--no-verify", "--message", filepath.Base(file)}, []string{"update-ref", base.Ref, "HEAD"})
}

// DropCandidate undoes [AddCandidate].
func DropCandidate(ctx context.Context, repo gitrepo.Repo) error {
	if err := repo.Git(ctx, "update-ref", base.Ref, base.Ref+"^"); err != nil {
		return err
	}
	return toBase(ctx, repo)
}

// complaint is what git printed.
func complaint(err error) string {
	var failed *run.Error
	if !errors.As(err, &failed) {
		return err.Error()
	}
	return strings.ReplaceAll(strings.TrimSpace(failed.Tail), "error: ", "")
}

// Broken returns those results of after that are conflicts and were none before.
func Broken(before, after []Result) []Result {
	was := map[string]Outcome{}
	for _, r := range before {
		was[r.Patch.Name] = r.Outcome
	}
	var broken []Result
	for _, r := range after {
		if r.Outcome == Conflict && was[r.Patch.Name] != Conflict {
			broken = append(broken, r)
		}
	}
	return broken
}
