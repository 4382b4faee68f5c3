// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// Stamp is what a build writes into the programs, and what else shapes them.
type Stamp struct {
	// Project whose programs are built.
	Project string
	Version Version
	// Commit is the tree's HEAD.
	Commit string
	// Dirty are the trees, this and linked ones, with files that differ from their HEAD.
	Dirty []string
	// Date is the build date, in whole seconds.
	Date time.Time

	// linked are the other trees that the tree's go.work takes modules from: name of
	// the project to HEAD.
	linked map[string]string
}

// ReadStamp returns the stamp for the tree of a project: its HEAD, and the date of
// that commit, which is the same everywhere because the series is applied with
// the patches' own dates.
func ReadStamp(ctx context.Context, ws workspace.Workspace, p workspace.Project) (Stamp, error) {
	v, err := projectVersion(ws, p)
	if err != nil {
		return Stamp{}, err
	}
	return TreeStamp(ctx, p.Name, p.Tree(), v)
}

// TreeStamp is [ReadStamp] for any tree and version, such as the base without
// the series.
func TreeStamp(ctx context.Context, project, tree string, v Version) (Stamp, error) {
	s := Stamp{Project: project, Version: v}
	head, err := gitrepo.Open(tree, nil).Output(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, fmt.Errorf("commit of %s: %w", tree, err)
	}
	commit, seconds, _ := strings.Cut(head, " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("date of %s: %w", tree, err)
	}
	s.Commit, s.Date = commit, time.Unix(n, 0).UTC()
	dirs := []string{tree}
	if s.linked, err = linkedTrees(ctx, tree); err != nil {
		return s, err
	}
	for _, name := range sortedKeys(s.linked) {
		dirs = append(dirs, filepath.Join(filepath.Dir(tree), name))
	}
	for _, dir := range dirs {
		dirty, err := gitrepo.Open(dir, nil).Dirty(ctx)
		if err != nil {
			return s, fmt.Errorf("status of %s: %w", dir, err)
		}
		if len(dirty) > 0 {
			s.Dirty = append(s.Dirty, dir)
		}
	}
	return s, nil
}

// linkedTrees returns the other trees from which the tree's go.work takes modules, with their
// HEADs. The trees of projects are side by side.
func linkedTrees(ctx context.Context, tree string) (map[string]string, error) {
	path := filepath.Join(tree, workspace.GoWork)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(path, b, nil)
	if err != nil {
		return nil, err
	}
	linked := map[string]string{}
	for _, u := range work.Use {
		beside, ok := strings.CutPrefix(u.Path, "../")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(beside, "/")
		if linked[name], err = gitrepo.Open(filepath.Join(tree, "..", name), nil).Rev(ctx, "HEAD"); err != nil {
			return nil, fmt.Errorf("%s uses %s: %w", path, u.Path, err)
		}
	}
	return linked, nil
}

// GitVersion is the version, marked as upstream does when a tree has changes
// that are in no commit. The mark is build metadata too.
func (s Stamp) GitVersion() string {
	v := s.Version.String()
	switch {
	case len(s.Dirty) == 0:
		return v
	case s.Version.Revision == 0:
		return v + "+dirty"
	default:
		return v + "-dirty"
	}
}

// Ldflags are upstream's linker flags for s.
func (s Stamp) Ldflags() string {
	flags := []string{toolchain.Strip}
	for _, v := range products[s.Project].variables(s) {
		flags = append(flags, "-X", v)
	}
	return strings.Join(flags, " ")
}
