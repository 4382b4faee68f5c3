package verbs

import (
	"context"
	"fmt"
	"path/filepath"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// Release packs dist/ from the applied series, for a list of platforms such as
// linux/amd64,linux/arm64; "" is this machine's.
func (a *App) Release(ctx context.Context, list string) error {
	platforms, err := release.ParsePlatforms(list)
	if err != nil {
		return err
	}
	r := a.reporter("release")
	if err := r.Run(ctx, a.apply()...); err != nil {
		return err
	}
	dir, err := release.Run(ctx, a.WS, release.Options{
		Platforms: platforms,
		CheckTree: func(ctx context.Context, p workspace.Project) error {
			return series.EnsureSafe(ctx, gitrepo.Open(p.Tree(), nil))
		},
	}, r)
	if err != nil {
		return err
	}
	r.Printf("release: %s\n", dir)
	r.Done()
	return nil
}

// ReleaseVerify checks the release of the current version against its sums, and
// against the same release in another dist folder unless that is "".
func (a *App) ReleaseVerify(against string) error {
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return err
	}
	dir := filepath.Join(a.WS.Dist(), v.String())
	if err := release.Verify(dir); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "release-verify: %s is as its SHA256SUMS says\n", dir)
	if against == "" {
		return nil
	}
	if err := release.Compare(dir, filepath.Join(against, v.String())); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "release-verify: %s has the same sums\n", filepath.Join(against, v.String()))
	return nil
}
