package overrides

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/mod/modfile"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
)

// checkOut makes the folder dir with the files that the tree's HEAD has in folder. Changes in the work tree that are
// in no commit are left out.
func checkOut(ctx context.Context, repo gitrepo.Repo, folder, dir string) error {
	tarball := dir + ".tar"
	defer os.Remove(tarball)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// A tree in place of a commit: git then does not fill in the commit's name
	// where upstream's files have a place for it.
	if err := repo.Git(ctx, "-c", "core.attributesFile="+os.DevNull, "archive", "--format=tar", "-o", tarball, "HEAD:"+folder); err != nil {
		return err
	}
	return run.Cmd{Log: repo.Log, Name: "tar", Args: []string{"-x", "-f", tarball, "-C", dir}}.Run(ctx)
}

// unpublished is the version by which the staging modules require each other in
// a git checkout.
const unpublished = "v0.0.0"

// publish puts a go.mod into the published form, and returns it: the tree's modules require each other at v0.0.0 in
// a git checkout of upstream, and at version where they come from published modules. Those stay as they are.
func publish(path, version string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(path, content, nil)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, r := range slices.Clone(f.Require) {
		if r.Mod.Version == unpublished {
			changed = true
			err = errors.Join(err, f.AddRequire(r.Mod.Path, version))
		}
	}
	for _, r := range slices.Clone(f.Replace) {
		if r.New.Version == "" {
			changed = true
			err = errors.Join(err, f.DropReplace(r.Old.Path, r.Old.Version))
		}
	}
	if err != nil || !changed {
		return content, err
	}
	f.Cleanup()
	if content, err = f.Format(); err != nil {
		return nil, err
	}
	return content, os.WriteFile(path, content, 0o644)
}
