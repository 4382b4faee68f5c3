package verbs

import (
	"context"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// upstreamScript runs one of upstream's own scripts in the tree, with our
// environment and the caches of the go command: setup_env of hack/lib would
// otherwise fill a second set below _output.
func (a *App) upstreamScript(ctx context.Context, s *progress.Step, script string) error {
	env := append(toolchain.Env(), a.binPath(), "FORCE_HOST_GO=y")
	for _, k := range []string{"GOCACHE", "GOMODCACHE"} {
		v, err := toolchain.GoValue(ctx, k)
		if err != nil {
			return err
		}
		env = append(env, k+"="+v)
	}
	return run.Cmd{Dir: a.WS.Tree(), Env: env, Log: s.Log, Name: "bash", Args: []string{script}}.Run(ctx)
}
