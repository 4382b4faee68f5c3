// SPDX-License-Identifier: Apache-2.0

package base

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// stagingPrefix is how the go.work of a tree names its staging modules.
const stagingPrefix = "./staging/src/"

// withoutTrailer names, in the message of the base's commit, a staging module that the
// tree does not have.
const withoutTrailer = "Without"

// modules are those of a tree.
type modules struct {
	main    downloaded
	staging []downloaded
	// without are the paths of staging modules that cannot be fetched and that no other
	// module of the tree requires: examples, that no program is made of.
	without []string
	// goVersion is the toolchain that fetched them, where the installed Go is too old for them.
	goVersion string
}

// modulesOf fetches the modules of a tree: the main one, and those below staging/src.
func modulesOf(ctx context.Context, o Options, log io.Writer) (m modules, err error) {
	var version string
	if o.Staging {
		if version, err = StagingVersion(o.Version); err != nil {
			return m, err
		}
	}
	main, failed, err := download(ctx, o.Pin, "", log, []string{o.Module + "@" + o.Version})
	if err == nil && len(failed) > 0 && failed[0].Zip != "" { // it is there, but for a later Go
		if m.goVersion, err = goVersionIn(failed[0]); err != nil {
			return m, err
		}
		if main, failed, err = download(ctx, o.Pin, m.goVersion, log, []string{o.Module + "@" + o.Version}); err != nil && !run.IsRefusal(err) {
			err = run.Refuse(fmt.Sprintf("%s %s needs %s: %v", o.Title, o.Version, m.goVersion, err),
				"that release of Go, or one that is later, installed or served by the Go module proxy", "go env GOPROXY; or see https://go.dev/doc/install")
		}
	}
	if err != nil {
		return m, err
	}
	if len(failed) > 0 {
		return m, cannotFetch(failed[0], "")
	}
	if m.main = main[0]; !o.Staging {
		return m, nil
	}
	names, err := stagingModules(m.main.Dir)
	if err != nil {
		return m, err
	}
	pinned, err := Pinned(o.Pin)
	if err != nil {
		return m, err
	}
	isPinned := func(path, version string) bool {
		return slices.Contains(pinned, module.Version{Path: path, Version: version})
	}
	// The pin says which modules its own version has: the tree must not depend on what is
	// served today.
	atPinnedVersion := isPinned(o.Module, o.Version)
	var queries []string
	for _, n := range names {
		if !atPinnedVersion || isPinned(n, version) {
			queries = append(queries, n+"@"+version)
		}
	}
	staging, failed, err := download(ctx, o.Pin, m.goVersion, log, queries)
	if err != nil {
		return m, err
	}
	if atPinnedVersion && len(failed) > 0 {
		return m, cannotFetch(failed[0], "")
	}
	m.staging = staging
	for _, n := range names {
		if !slices.ContainsFunc(staging, func(s downloaded) bool { return s.Path == n }) {
			m.without = append(m.without, n)
		}
	}
	if o.Partial {
		return m, nil
	}
	return m, m.checkWithout(failed)
}

// goVersionIn returns the toolchain for a module that the go command has fetched and does not take: its .go-version says.
func goVersionIn(m downloaded) (string, error) {
	z, err := zip.OpenReader(m.Zip)
	if err != nil {
		return "", err
	}
	defer z.Close()
	b, err := fs.ReadFile(z, m.Path+"@"+m.Version+"/"+toolchain.VersionFile)
	if err != nil {
		return "", errors.Join(cannotFetch(m, ""), err)
	}
	return "go" + strings.TrimSpace(string(b)), nil
}

// checkWithout refuses to leave out a module that another one of the tree requires.
// Upstream keeps each go.mod tidy, so it requires all that its packages import.
func (m modules) checkWithout(failed []downloaded) error {
	for _, of := range append([]downloaded{m.main}, m.staging...) {
		b, err := os.ReadFile(filepath.Join(of.Dir, "go.mod"))
		if err != nil {
			return err
		}
		f, err := modfile.ParseLax(of.Path+"/go.mod", b, nil)
		if err != nil {
			return err
		}
		for _, r := range f.Require {
			if !slices.Contains(m.without, r.Mod.Path) {
				continue
			}
			gone := downloaded{Path: r.Mod.Path, Version: r.Mod.Version, Error: "the pin does not have it"}
			if i := slices.IndexFunc(failed, func(f downloaded) bool { return f.Path == r.Mod.Path }); i >= 0 {
				gone = failed[i]
			}
			return cannotFetch(gone, of.Path)
		}
	}
	return nil
}

// dropUses takes modules that the tree is without out of its go.work: the go command
// wants every folder that is named there.
func dropUses(tree string, modules []string) error {
	if len(modules) == 0 {
		return nil
	}
	return editWork(tree, func(f *modfile.WorkFile) (err error) {
		for _, m := range modules {
			err = errors.Join(err, f.DropUse(stagingPrefix+m))
		}
		return err
	})
}

// Without returns the staging modules that the base in repo does not have.
func Without(ctx context.Context, repo gitrepo.Repo) ([]string, error) {
	return repo.Lines(ctx, "log", "-1", "--format=%(trailers:key="+withoutTrailer+",valueonly)", Ref)
}

// StagingVersion returns the version of the staging modules that belong to a
// version of Kubernetes: v1.37.2 gives v0.37.2.
func StagingVersion(kubernetes string) (string, error) {
	if !semver.IsValid(kubernetes) || semver.Major(kubernetes) != "v1" || semver.Build(kubernetes) != "" {
		return "", run.Refuse(fmt.Sprintf("unknown base %q", kubernetes),
			"a tag of Kubernetes such as v1.37.2", "make rebase, which lists those after the present one")
	}
	return "v0" + strings.TrimPrefix(kubernetes, "v1"), nil
}

// stagingModules reads the names of the staging modules from the main tree's
// go.work.
func stagingModules(dir string) ([]string, error) {
	f, err := readWork(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, u := range f.Use {
		if n, ok := strings.CutPrefix(u.Path, stagingPrefix); ok {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s/go.work names no staging module", dir)
	}
	return names, nil
}
