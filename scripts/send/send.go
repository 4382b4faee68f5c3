// Package send makes of patches what a person can send to upstream: a branch on the base, files
// for git am, and the text of a pull request.
package send

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// embargoed begins the trailer Upstream of a patch that must not be public yet.
const embargoed = "not-forwarded: security process first"

// Request says what to send, by whom.
type Request struct {
	Project workspace.Project
	// Series has all patches of the project, Patches those to send, in its order.
	Series, Patches []series.Patch
	Author          gitrepo.Person
	// Issue is the number of the one of upstream's that is fixed; 0 for none.
	Issue int
	// Force replaces what was made before. EmbargoOver says that what is fixed is public.
	Force, EmbargoOver bool
}

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug names the branch and the folder, after the first patch.
func (r Request) Slug() string {
	return strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(r.Patches[0].Subject), "-"), "-")
}

// Branch is the new branch in the tree of the project.
func (r Request) Branch() string { return "send/" + r.Slug() }

// Make makes the branch and, in dir, the files. Where that is refused, nothing is left.
func (r Request) Make(ctx context.Context, dir string, s *run.Step) error {
	tree := r.Project.Repo(s.Log)
	if err := r.check(ctx, tree, dir); err != nil {
		return err
	}
	head, err := r.commit(ctx, tree, s)
	if err != nil {
		return err
	}
	template, err := tree.Output(ctx, "show", base.Ref+":.github/PULL_REQUEST_TEMPLATE.md")
	if err != nil {
		return err
	}
	text := []byte(pullRequest(template, r.Patches, r.Issue))
	err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755), series.WritePatches(ctx, tree, dir, head), os.WriteFile(filepath.Join(dir, "pull-request.md"), text, 0o644))
	if err == nil {
		err = tree.Git(ctx, "branch", "--quiet", "--force", r.Branch(), head)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// check refuses what must not be public yet, and to replace what a person may have edited.
func (r Request) check(ctx context.Context, tree gitrepo.Repo, dir string) error {
	for _, p := range r.Patches {
		if !r.EmbargoOver && strings.HasPrefix(strings.Join(p.Trailers["Upstream"], ""), embargoed) {
			return run.Refuse(p.Name+" goes through the security process first: a public branch would tell everybody how to attack a cluster without it",
				"a report as https://kubernetes.io/docs/reference/issues-security/security/#report-a-vulnerability says, and the end of its embargo", r.command(r.Patches)+" EMBARGO_OVER=1")
		}
	}
	_, noBranch := tree.Rev(ctx, "refs/heads/"+r.Branch())
	if _, noDir := os.Stat(dir); !r.Force && (noBranch == nil || noDir == nil) {
		return run.Refuse("the branch "+r.Branch()+" in "+tree.Dir+" or "+dir+" is there already", "neither: they may have work of yours", r.command(r.Patches)+" FORCE=1")
	}
	return nil
}

// command is what sends patches of the project.
func (r Request) command(patches []series.Patch) string {
	var numbers []string
	for _, p := range patches {
		number, _, _ := strings.Cut(p.Name, "-")
		numbers = append(numbers, "^"+number+"-")
	}
	return "make send PROJECT=" + r.Project.Name + " PATCH='" + strings.Join(numbers, "|") + "'"
}

// commit puts the patches on the base, in a work tree of their own, without our trailers and by
// the author. It returns the last commit.
func (r Request) commit(ctx context.Context, tree gitrepo.Repo, s *run.Step) (string, error) {
	work := gitrepo.Open(tree.Dir+"-send", s.Log)
	defer func() {
		_ = os.RemoveAll(work.Dir)
		_ = tree.Git(context.WithoutCancel(ctx), "worktree", "prune")
	}()
	if err := base.AddWorktree(ctx, tree, work.Dir, base.Ref); err != nil {
		return "", err
	}
	results, err := series.Rebase(ctx, work, r.Project.Series(), r.Patches, true, s)
	if err != nil {
		return "", err
	}
	if err := r.checkAlone(results); err != nil {
		return "", err
	}
	commits, err := work.Lines(ctx, "rev-list", "--reverse", base.Ref+"..HEAD")
	work.As = r.Author
	head := base.Ref
	for i := 0; err == nil && i < len(commits); i++ {
		head, err = work.Output(ctx, "commit-tree", commits[i]+"^{tree}", "-p", head, "-m", r.Patches[i].Subject, "-m", r.Patches[i].Body)
	}
	return head, err
}

// checkAlone refuses a patch that the base has, or that needs others of ours, and names these.
func (r Request) checkAlone(results []series.Result) error {
	for _, result := range results {
		switch result.Outcome {
		case series.Upstream:
			return run.Refuse("the base has the change of "+result.Patch.Name, "a change that upstream lacks", "make send without it")
		case series.Conflict:
			if len(result.Files) == 0 { // there was no 3-way merge
				result.Files = result.Patch.Paths()
			}
			names, together := r.needed(result)
			return run.Refuse(result.Patch.Name+" conflicts with the base in "+strings.Join(result.Files, ", ")+"; earlier patches that touch the same: "+strings.Join(names, ", "),
				"patches that apply without the rest of the series", r.command(together))
		}
	}
	return nil
}

// needed returns the earlier patches that touch the files in conflict, and all to send with them.
func (r Request) needed(conflict series.Result) (names []string, together []series.Patch) {
	isEarlier := true
	for _, p := range r.Series {
		isEarlier = isEarlier && p.Name != conflict.Patch.Name
		isSent := slices.ContainsFunc(r.Patches, func(q series.Patch) bool { return q.Name == p.Name })
		touches := slices.ContainsFunc(p.Paths(), func(path string) bool { return slices.Contains(conflict.Files, path) })
		if isEarlier && touches && !isSent {
			names = append(names, p.Name)
		}
		if isSent || isEarlier && touches {
			together = append(together, p)
		}
	}
	return names, together
}
