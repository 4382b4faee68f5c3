package verbs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func releaseCommand(a *App) *cobra.Command {
	var platforms string
	c := verb("release", "Pack dist/: tarballs, source, series, sums, manifest, SBOM and provenance", `
Two releases of the same commit are equal, byte for byte.`,
		"  capacityv2 release --platforms linux/amd64,linux/arm64", func(ctx context.Context) error { return a.Release(ctx, platforms) })
	c.Flags().StringVar(&platforms, "platforms", "", "such as linux/amd64,linux/arm64 (default: this machine's)")
	return c
}

// Release packs dist/ from the applied series, for a list of platforms such as
// linux/amd64,linux/arm64; "" is this machine's.
func (a *App) Release(ctx context.Context, list string) error {
	platforms, err := release.ParsePlatforms(list)
	if err != nil {
		return err
	}
	rel := release.New(a.WS, release.Options{
		Platforms: platforms,
		CheckTree: func(ctx context.Context, p workspace.Project) error {
			return series.EnsureSafe(ctx, gitrepo.Open(p.Tree(), nil))
		},
	})
	r := a.reporter("release")
	if err := errors.Join(r.Run(ctx, a.apply(rel.Tasks()...)...), rel.Close()); err != nil {
		return err
	}
	r.Printf("release: %s\n", rel.Dir())
	r.Done()
	return nil
}
