package verbs

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/prove"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/suites"
)

func proveCommand(a *App) *cobra.Command {
	var o prove.Options
	c := verb("prove", "Check that each patch is needed: the test that its Proven-By names fails without it", `
Patches of class feature, fix and perf are tried; for the others it says why not. Both runs
leave out the later patches. A test that passes without the patch is an error.`, "  capacityv2 prove --patch 0023", func(ctx context.Context) error { return a.Prove(ctx, o) })
	patternFlag(c, &o.Patch, "patch", "only patches whose file name matches")
	c.Flags().StringVar(&o.Since, "since", "",
		"only patches that differ from those of this commit; all, if origin does not have it any more, or it has another base or other checks")
	return c
}

// Prove checks that the patches that change a component are needed: without one, the test that it names fails.
func (a *App) Prove(ctx context.Context, o prove.Options) error {
	plan, err := prove.NewPlan(ctx, a.WS, o)
	if err != nil {
		return err
	}
	if plan.Note != "" {
		fmt.Fprintf(a.Out, "prove: %s\n", plan.Note)
	}
	if len(plan.Tasks) == 0 {
		return nil
	}
	return a.do(ctx, "prove", a.apply(plan.Tasks...)...)
}

// failsWithout runs the integration tests of matching folders (nil: all) with the gate off and on the stock server.
func (a *App) failsWithout(ctx context.Context, folder *regexp.Regexp) error {
	without, err := suites.NewWithout(a.integrationTests(), a.integrationEnv(), folder)
	if err != nil {
		return err
	}
	return a.do(ctx, "fails-without", slices.Concat(a.apply(a.buildEtcd(),
		run.Task{Name: "build the stock kube-apiserver", Do: a.buildStockAPIServer},
		a.buildProvisioner()), without.Tasks())...)
}

func (a *App) integrationTests() string { return filepath.Join(a.WS.Root, "test-integration") }

func (a *App) endToEndTests() string { return filepath.Join(a.WS.Root, "test-e2e") }

// specExpectations is the list of what our end-to-end specs do without the change.
func (a *App) specExpectations() (suites.Expectations, error) {
	return suites.ReadList(a.endToEndTests())
}

// specSuite is the folder of the end-to-end test program.
func (a *App) specSuite() string { return filepath.Join(a.endToEndTests(), "suite") }

// lintWithout checks the lists of what fails without the change.
func (a *App) lintWithout(context.Context, *run.Step) error {
	if _, err := a.specExpectations(); err != nil {
		return err
	}
	if _, err := e2e.ReadSelection(a.specSuite()); err != nil {
		return err
	}
	return suites.LintList(a.integrationTests())
}
