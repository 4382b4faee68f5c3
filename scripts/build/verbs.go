// SPDX-License-Identifier: Apache-2.0

// Package build has the verb that makes a release, and builds what others run.
package build

import (
	"context"
	"errors"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/build/release"
	"capacityv2.internal/scripts/ground/cli"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
)

// Verbs returns those of this wing.
func Verbs() []*cobra.Command { return []*cobra.Command{releaseVerb()} }

func releaseVerb() *cobra.Command {
	var signKey string
	c := cli.Verb("release", "Pack dist/: tarballs, source, series, SBOM, sums and their signature", `
Two releases of the same commit are equal, byte for byte, but for the signature. It ends with the commands that check
that. The key is one of minisign's; its password, if it has one, is in the environment variable `+release.PasswordVariable+`.`,
		"  capacityv2 release --sign-key ~/.minisign/minisign.key", func(ctx context.Context, ws workspace.Workspace) error {
			var key *minisign.PrivateKey
			if signKey != "" {
				var err error
				if key, err = release.ReadSecretKey(signKey); err != nil {
					return err
				}
			}
			rel := release.New(ws, key)
			return errors.Join(ws.Run(ctx, "release", patch.Applied(ws, rel.Tasks()...)...), rel.Close())
		})
	cli.PathFlag(c, &signKey, "sign-key", "file with the secret key that signs (default: not signed)")
	return c
}
