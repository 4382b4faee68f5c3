package verbs

import (
	"context"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// Up applies the series, builds the components, and brings up a local cluster, with a
// driver unless that is "". Gates that are not chosen are those of feature-gates.yaml.
func (a *App) Up(ctx context.Context, options cluster.Options, driver string) error {
	if err := checkDriver(driver); err != nil {
		return err
	}
	r := a.reporter("up")
	if options.Gates == "" {
		var err error
		if options.Gates, err = a.featureGates(); err != nil {
			return err
		}
	}
	components, validate := a.WS.Components(), "strict"
	if options.Components != "" {
		// Components of others know nothing of our fields.
		components, validate = options.Components, "warn"
	}
	build := []progress.Task{{Name: "build the components", Do: a.buildComponents}}
	if driver != "" {
		err := r.Step(ctx, "images of the driver", func(ctx context.Context, s *progress.Step) error {
			images, err := a.driverImages(ctx, components, s)
			options.Images = append(options.Images, images...)
			return err
		})
		if err != nil {
			return err
		}
		build = append(build, progress.Task{Name: "build the driver and its provisioner", Do: a.buildDriver})
	}
	// What would fail at the end is said before the long build.
	plan, err := cluster.Prepare(ctx, a.WS, options, r)
	if err != nil {
		return err
	}
	if err := checkDriverMode(driver, plan.Mode); err != nil {
		return err
	}
	if err := r.Run(ctx, a.apply(build...)...); err != nil {
		return err
	}
	if err := cluster.Tools(ctx, a.WS, plan, r); err != nil {
		return err
	}
	if err := cluster.Up(ctx, a.WS, plan, r); err != nil {
		return err
	}
	if driver != "" {
		err := r.Step(ctx, "install the driver", func(ctx context.Context, s *progress.Step) error { return a.installDriver(ctx, validate, s) })
		if err != nil {
			return err
		}
		showDriver(a.Out)
	}
	r.Done()
	return nil
}

func (a *App) buildComponents(ctx context.Context, s *progress.Step) error {
	if err := toolchain.RequireDisk(a.WS.Work, buildDisk); err != nil {
		return err
	}
	return release.BuildComponents(ctx, a.WS, workspace.Kubernetes, s.Log, a.WS.Components(), cluster.Components()...)
}

// Down ends the local cluster.
func (a *App) Down(ctx context.Context) error {
	r := a.reporter("down")
	if err := cluster.Down(ctx, a.WS, r); err != nil {
		return err
	}
	r.Done()
	return nil
}
