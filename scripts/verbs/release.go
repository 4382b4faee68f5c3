package verbs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func releaseCommand(a *App) *cobra.Command {
	var signKey, proxyBase string
	c := verb("release", "Pack dist/: tarballs, source, series, SBOM, sums and their signature", `
Two releases of the same commit and the same base image of kube-proxy, if any, are equal, byte for byte,
whoever signs them. The key is one of minisign's; its password, if it has one, is in the environment
variable `+release.PasswordVariable+`.

kube-proxy needs the programs iptables and nft. With the tarball of an image that has them (from
"docker save", such as upstream's image of kube-proxy), the release has an image of kube-proxy too.`,
		"  capacityv2 release --sign-key ~/.minisign/minisign.key", func(ctx context.Context) error { return a.Release(ctx, signKey, proxyBase) })
	c.Flags().StringVar(&signKey, "sign-key", "", "file with the secret key that signs (default: not signed)")
	c.Flags().StringVar(&proxyBase, "kube-proxy-base", "", "tarball of the base image of kube-proxy (default: no such image)")
	return c
}

// Release packs dist/ from the applied series. The secret key and the base image are files, or "".
func (a *App) Release(ctx context.Context, signKey, proxyBase string) error {
	o := release.Options{ProxyBase: proxyBase, CheckTree: func(ctx context.Context, p workspace.Project) error {
		return series.EnsureSafe(ctx, p.Repo(nil))
	}}
	if signKey != "" {
		var err error
		if o.Key, err = release.ReadSecretKey(signKey); err != nil {
			return err
		}
	}
	rel := release.New(a.WS, o)
	return errors.Join(a.do(ctx, "release", a.apply(rel.Tasks()...)...), rel.Close())
}
