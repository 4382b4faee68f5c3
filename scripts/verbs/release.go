package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func releaseCommand(a *App) *cobra.Command {
	var signKey, proxyBase string
	c := verb("release", "Pack dist/: tarballs, source, series, SBOM, provenance, sums and their signature", `
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

func releaseVerifyCommand(a *App) *cobra.Command {
	var publicKey, against string
	c := verb("release-verify", "Check signature, sums and provenance of dist/ offline, and compare it with another one", `
Nothing is fetched. It names every file that is missing, changed or not expected.`,
		"  capacityv2 release-verify --public-key minisign.pub", func(context.Context) error { return a.ReleaseVerify(publicKey, against) })
	c.Flags().StringVar(&publicKey, "public-key", "", "file with the public key of the one who has to have signed (default: the signature is not checked)")
	c.Flags().StringVar(&against, "against", "", "dist folder of another checkout, which has to hold the same release")
	return c
}

// ReleaseVerify checks the release of the current version: that the owner of the public key has
// signed it, and that another dist folder has the same one, unless these are "".
func (a *App) ReleaseVerify(publicKey, against string) error {
	v, err := release.ReadVersion(a.WS)
	if err != nil {
		return err
	}
	var key *minisign.PublicKey
	signed := ", signature not checked: PUBLIC_KEY names no key"
	if publicKey != "" {
		if key, err = release.ReadPublicKey(publicKey); err != nil {
			return err
		}
		signed = fmt.Sprintf(", signed by the key %X", key.ID())
	}
	dir := filepath.Join(a.WS.Dist(), v.String())
	if err := release.Verify(dir, key); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "release-verify: %s is intact%s\n", dir, signed)
	if against == "" {
		return nil
	}
	if err := release.Compare(dir, filepath.Join(against, v.String())); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "release-verify: %s has the same sums\n", filepath.Join(against, v.String()))
	return nil
}

// releases is about the table of releases in CHANGELOG.md. What section does with it is to check it,
// or to write it.
func (a *App) releases(section func(path, by, content string) error) func(context.Context, *run.Step) error {
	return func(context.Context, *run.Step) error {
		path := filepath.Join(a.WS.Root, "CHANGELOG.md")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		table, err := release.Table(a.WS, string(text))
		if err != nil {
			return err
		}
		return section(path, "make export", table)
	}
}
