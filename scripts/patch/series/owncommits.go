// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// RebaseOwn puts the commits of a tree that are not exported on the patch files, which have changed since the tree was
// made. It is one git rebase -i, whose list has the newer version of each patch; one that both have changed is merged. Where
// that conflicts, the rebase waits for a person.
func RebaseOwn(ctx context.Context, repo gitrepo.Repo, dir string, s *run.Step) error {
	if err := ensureCommitted(ctx, repo); err != nil {
		return err
	}
	own, err := hasOwnCommits(ctx, repo)
	if err != nil {
		return err
	}
	if !own {
		files, err := storeFiles(ctx, repo, dir)
		if err != nil {
			return err
		}
		return files.apply(ctx, repo, dir, s)
	}
	patches, err := Read(dir)
	if err != nil {
		return err
	}
	folder, err := storeFolder(ctx, repo, patches)
	if err != nil {
		return err
	}
	if was, err := repo.Rev(ctx, filesRef); err == nil && was == folder {
		s.Sayf("%s has your commits on the patch files as they are", repo.Dir)
		return nil
	}
	at := repo.Dir + "-export"
	defer removeWorktree(ctx, repo, at)
	work, err := amElsewhere(ctx, repo, at, dir, patches)
	if err != nil {
		return err
	}
	exported, err := work.Rev(ctx, "HEAD")
	if err != nil {
		return err
	}
	var versions [3][]change
	for i, rev := range []string{base.ExportedRef, "HEAD", exported} {
		if versions[i], err = changes(ctx, repo, rev); err != nil {
			return err
		}
	}
	todo, err := rebaseList(ctx, repo, mergeSeries(versions[0], versions[1], versions[2]))
	if err != nil {
		return err
	}
	// Last of all, so that an aborted rebase leaves everything as it was.
	todo += fmt.Sprintf("exec printf '%s' | git update-ref --stdin\n", strings.ReplaceAll(refUpdates(exported, folder), "\n", `\n`))
	list := filepath.Join(work.Dir, "rebase-list")
	if err := os.WriteFile(list, []byte(todo), 0o644); err != nil {
		return err
	}
	if err := repo.Git(ctx, "-c", "sequence.editor=cp '"+list+"'", "rebase", "--quiet", "--interactive", base.Ref); err != nil {
		files, e := conflictingFiles(context.WithoutCancel(ctx), repo)
		if ctx.Err() != nil || e != nil || !repo.Applying() {
			return err
		}
		return run.Refuse("commits of yours and the patch files conflict in "+strings.Join(files, ", "), "a merge by hand: git rebase waits in "+repo.Dir,
			"git -C "+repo.Dir+" status; edit, git add, git rebase --continue there (or --abort: all is as it was); then make export")
	}
	s.AtEnd("%s has your commits on the patch files: make export writes them\n", repo.Dir)
	return nil
}

// change is the commit of a patch, or one on its way to become one.
type change struct {
	commit string
	// subject is unique: a number is appended where one comes again.
	subject string
	message string
	// content is the same for two commits that change the same lines in the same way.
	content string
}

func (c change) same(other change) bool {
	return c.content == other.content && c.message == other.message
}

// changes returns the commits from the base to rev, oldest first.
func changes(ctx context.Context, repo gitrepo.Repo, rev string) (all []change, err error) {
	log, err := repo.Output(ctx, "log", "--reverse", "--format=%x00%H%n%B", base.Ref+".."+rev)
	if err != nil || log == "" {
		return nil, err
	}
	diffs, err := repo.Output(ctx, "log", "--patch", "--no-renames", "--full-index", "--binary", "--format=%H", base.Ref+".."+rev)
	if err != nil {
		return nil, err
	}
	ids, err := repo.OutputOf(ctx, diffs, "patch-id", "--stable")
	if err != nil {
		return nil, err
	}
	content := map[string]string{}
	for line := range strings.Lines(ids) {
		id, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		content[commit] = id
	}
	seen := map[string]int{}
	for _, entry := range strings.Split(log, "\x00")[1:] {
		commit, message, _ := strings.Cut(entry, "\n")
		subject, _, _ := strings.Cut(message, "\n")
		seen[subject]++
		all = append(all, change{commit, fmt.Sprint(subject, seen[subject]), strings.TrimSpace(message), content[commit]})
	}
	return all, nil
}

// merged is a patch of the result: one commit, or two of them.
type merged struct {
	change
	// from and to are the versions before and after the own change that has to be merged into it. from may be missing.
	from, to *change
}

// mergeSeries merges two versions of a series that come from the same one. A patch that only one side has changed, added
// or removed is as there; what one has removed and the other has changed stays.
func mergeSeries(before, own, files []change) (result []merged) {
	find := func(in []change, subject string) *change {
		if i := slices.IndexFunc(in, func(c change) bool { return c.subject == subject }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	subjects := func(in []change) (all []string) {
		for _, c := range in {
			all = append(all, c.subject)
		}
		return all
	}
	// The order is that of the side that has changed it, and the files' if both have.
	order, other := subjects(files), subjects(own)
	if slices.Equal(order, subjects(before)) {
		order, other = other, order
	}
	for i, subject := range other { // behind the one that it follows there, and what is new there
		if slices.Contains(order, subject) {
			continue
		}
		at := 0
		if i > 0 {
			at = slices.Index(order, other[i-1]) + 1
		}
		for at < len(order) && find(before, order[at]) == nil && !slices.Contains(other, order[at]) {
			at++
		}
		order = slices.Insert(order, at, subject)
	}
	for _, subject := range order {
		was, ours, pulled := find(before, subject), find(own, subject), find(files, subject)
		switch {
		case ours == nil && (was == nil || !pulled.same(*was)), ours != nil && pulled != nil && (ours.same(*pulled) || was != nil && ours.same(*was)):
			result = append(result, merged{change: *pulled})
		case pulled == nil && (was == nil || !ours.same(*was)), ours != nil && pulled != nil && was != nil && pulled.same(*was):
			result = append(result, merged{change: *ours})
		case ours != nil && pulled != nil:
			result = append(result, merged{*pulled, was, ours})
		}
	}
	return result
}

// rebaseList is the list of git rebase -i. What has to be merged into a patch is a fixup of it, from the version that both
// sides had to the own one.
func rebaseList(ctx context.Context, repo gitrepo.Repo, series []merged) (string, error) {
	var list strings.Builder
	for _, m := range series {
		subject, _, _ := strings.Cut(m.message, "\n")
		fmt.Fprintf(&list, "pick %s %s\n", m.commit, subject)
		if m.to == nil {
			continue
		}
		fixup, verb := m.to.commit, "fixup"
		if m.from != nil {
			var err error
			if fixup, err = repo.OutputOf(ctx, m.to.message+"\n", "commit-tree", "-p", m.from.commit, m.to.commit+"^{tree}"); err != nil {
				return "", err
			}
			if m.from.message != m.to.message && m.from.message == m.message {
				verb = "fixup -C"
			}
		}
		fmt.Fprintf(&list, "%s %s your version\n", verb, fixup)
	}
	return list.String(), nil
}
