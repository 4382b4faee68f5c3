package verbs

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"

	"capacityv2.internal/scripts/e2e"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/suites"
)

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
