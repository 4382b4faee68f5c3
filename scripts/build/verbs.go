// SPDX-License-Identifier: Apache-2.0

// Package build has the verb that makes a release, and builds what others run.
package build

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build/release"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

// Verbs returns those of this wing.
func Verbs() []*cobra.Command { return []*cobra.Command{releaseVerb()} }

func releaseVerb() *cobra.Command {
	var signKey, proxyBase string
	c := cli.Verb("release", "Pack dist/: tarballs, source, series, SBOM, sums and their signature", `
Two releases of the same commit and the same base image of kube-proxy, if any, are equal, byte for byte,
but for the signature. It ends with the commands that check that. The key is one of minisign's; its password, if it has
one, is in the environment variable `+release.PasswordVariable+`.

kube-proxy needs the programs iptables and nft. With the tarball of an image that has them (from
"docker save", such as upstream's image of kube-proxy), the release has an image of kube-proxy too.`,
		"  capacityv2 release --sign-key ~/.minisign/minisign.key", func(ctx context.Context, ws workspace.Workspace) error {
			o := release.Options{ProxyBase: proxyBase}
			if signKey != "" {
				var err error
				if o.Key, err = release.ReadSecretKey(signKey); err != nil {
					return err
				}
			}
			rel := release.New(ws, o)
			return errors.Join(ws.Run(ctx, "release", patch.Applied(ws, rel.Tasks()...)...), rel.Close())
		})
	cli.PathFlag(c, &signKey, "sign-key", "file with the secret key that signs (default: not signed)")
	cli.PathFlag(c, &proxyBase, "kube-proxy-base", "tarball of the base image of kube-proxy (default: no such image)")
	return c
}
