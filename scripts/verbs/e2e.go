package verbs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"capacityv2.internal/scripts/cluster"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
)

// e2eNodes is what the tests need: a node to drain, one without room, and one that
// gets room.
const e2eNodes = 3

// E2E runs the end-to-end tests on a local cluster, with the reference driver. A cluster that runs already
// is used and left alone; one that is started here is ended, whatever happens.
func (a *App) E2E(ctx context.Context, options cluster.Options) (err error) {
	before, err := cluster.Running(a.WS)
	if err != nil {
		return err
	}
	options.DefaultNodes = e2eNodes
	driver := referenceDriver
	if options.Mode == string(cluster.ModeControlPlane) || options.RuntimeEndpoint != "" {
		driver = ""
	}
	if err := a.Up(ctx, options, driver); err != nil {
		return err
	}
	if !before {
		defer func() { err = errors.Join(err, a.Down(context.WithoutCancel(ctx))) }()
	}
	st, err := cluster.StatusOf(a.WS)
	if err != nil {
		return err
	}
	return a.do(ctx, "e2e", progress.Task{Name: "end-to-end tests", Do: func(ctx context.Context, s *progress.Step) error {
		env := []string{a.binPath(), "KUBECONFIG=" + st.Kubeconfig, "KUBECTL=" + filepath.Join(st.Components, "kubectl"), "CAPACITYV2_CLUSTER_MODE=" + string(st.Mode), "CAPACITYV2_DRIVER=" + driver}
		var results bytes.Buffer
		err := toolchain.Test(ctx, filepath.Join(a.WS.Root, "test-e2e"), env, s.Log, io.MultiWriter(a.Out, &results), "-v", "-count=1", "-timeout", "15m", "./api")
		return errors.Join(err, refuseSkips(results.String(), options))
	}})
}

var skipLine = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)

// refuseSkips refuses results with skipped tests, unless the user has asked for a
// cluster without nodes, or with the one node of the host.
func refuseSkips(results string, asked cluster.Options) error {
	if asked.Mode == string(cluster.ModeControlPlane) || asked.RuntimeEndpoint != "" {
		return nil
	}
	var skipped []string
	for _, m := range skipLine.FindAllStringSubmatch(results, -1) {
		skipped = append(skipped, m[1])
	}
	if len(skipped) == 0 {
		return nil
	}
	return progress.Refuse("skipped tests: "+strings.Join(skipped, ", "), "all of them run", "as root: make e2e; or without nodes: make e2e CLUSTER_MODE=control-plane")
}
