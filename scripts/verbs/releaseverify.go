package verbs

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/release"
)

func releaseVerifyCommand(a *App) *cobra.Command {
	var against string
	c := verb("release-verify", "Check the sums of dist/ offline, and compare it with another one", `
Nothing is fetched. It names every file that is missing, changed or not expected.`,
		"  capacityv2 release-verify --against ../other/dist", func(context.Context) error { return a.ReleaseVerify(against) })
	c.Flags().StringVar(&against, "against", "", "dist folder of another checkout, which has to hold the same release")
	return c
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
