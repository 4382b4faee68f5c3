package verbs

import (
	"context"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// upstreamScript runs one of upstream's own scripts in the tree.
func (a *App) upstreamScript(ctx context.Context, s *progress.Step, script string) error {
	env, err := toolchain.UpstreamEnv(ctx)
	if err != nil {
		return err
	}
	return run.Cmd{Dir: a.WS.Tree(), Env: append(env, a.binPath()), Log: s.Log, Name: "bash", Args: []string{script}}.Run(ctx)
}
