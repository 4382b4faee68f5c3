// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"time"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// inputs are what a release is made from.
type inputs struct {
	// version and date of the release are those of Kubernetes.
	version  Version
	date     time.Time
	sources  []source // by name
	programs []program
	// images of the release: name to the ID, by which container runtimes know it.
	images    map[string]string
	goVersion string
}

// source is the patched tree of a project.
type source struct {
	project  workspace.Project
	stamp    Stamp
	base     modules // what the base was assembled from; nil for a git checkout
	baseTree string  // git's name of the base's tree
	tree     string  // git's name of HEAD's tree
	patches  []series.Patch
}

// program is one built program.
type program struct {
	name, sha256 string
	source       string   // name of the source that it is built from
	linked       []string // names of other sources that are compiled into it
	modules      modules  // compiled into it
}

// readInputs reads the sources: every project, patched.
func readInputs(ctx context.Context, ws workspace.Workspace, s *run.Step) (inputs, error) {
	in := inputs{images: map[string]string{}}
	projects, err := ws.Projects()
	if err != nil {
		return in, err
	}
	for _, p := range projects {
		src, err := readSource(ctx, ws, p, s.Log)
		if err != nil {
			return in, err
		}
		in.sources = append(in.sources, src)
		if p.Name == workspace.Kubernetes {
			in.version, in.date = src.stamp.Version, src.stamp.Date
		}
		s.Sayf("%s %s: commit %.12s, %d patches", p.Title, src.stamp.Version, src.stamp.Commit, len(src.patches))
	}
	return in, nil
}

// readSource reads what there is of a project, and refuses what would not be
// reproducible.
func readSource(ctx context.Context, ws workspace.Workspace, p workspace.Project, log io.Writer) (source, error) {
	src := source{project: p}
	var err error
	if src.stamp, err = ReadStamp(ctx, ws, p); err != nil {
		return src, err
	}
	if len(src.stamp.Dirty) > 0 {
		dirty := src.stamp.Dirty[0]
		return src, run.Refuse("dirty tree: files in "+dirty+" differ from its HEAD",
			"the base with the series, nothing else", "git -C "+dirty+" status; then make export or git -C "+dirty+" stash --include-untracked")
	}
	if product, ok := products[p.Name]; ok {
		if err := product.check(ctx, p.Tree()); err != nil {
			return src, err
		}
	}
	repo := p.Repo(log)
	origin, err := base.OriginOf(ctx, repo)
	if err == nil && !origin.Checkout {
		src.base, err = baseModules(p)
	}
	if err != nil {
		return src, err
	}
	if src.baseTree, err = repo.Tree(ctx, base.Ref); err != nil {
		return src, fmt.Errorf("tree of the base: %w", err)
	}
	if src.tree, err = repo.Tree(ctx, "HEAD"); err != nil {
		return src, err
	}
	src.patches, err = series.Read(p.Series())
	return src, err
}

// modules returns those of all bases and programs, once.
func (in inputs) modules() modules {
	all := modules{}
	for _, s := range in.sources {
		all.add(s.base)
	}
	for _, p := range in.programs {
		all.add(p.modules)
	}
	return all
}

// patch is the path of a patch in the repository.
func (s source) patch(p series.Patch) string { return "patches/" + s.project.Name + "/" + p.Name }

// tarball is the file name of the patched source, for Kubernetes upstream's.
func (s source) tarball() string { return s.project.Name + "-src.tar.gz" }
