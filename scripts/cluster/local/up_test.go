// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

// fakeCluster is a workspace in which upstream's script only says that it has started everything, and a plan for the
// control plane.
func fakeCluster(t *testing.T) (workspace.Workspace, func() *Plan) {
	t.Helper()
	ws := testWorkspace(t)
	testtree.Write(t, "", map[string]string{
		filepath.Join(ws.Tree(), localUp):                         "echo " + scriptDone + "\nexec sleep 60\n",
		filepath.Join(ws.Components(), "kubectl"):                 "#!/bin/sh\nprintf ok\n",
		filepath.Join(ws.Components(), "kube-apiserver"):          "",
		filepath.Join(ws.Components(), "kube-scheduler"):          "",
		filepath.Join(ws.Components(), "kube-controller-manager"): "",
		filepath.Join(ws.Bin(), "etcd"):                           "",
	})
	return ws, func() *Plan {
		p := NewPlan(ws, Options{Gates: "A=true"})
		p.Mode = ModeControlPlane
		return p
	}
}

func up(t *testing.T, p *Plan) error {
	t.Helper()
	do := func(ctx context.Context, s *run.Step) error { return p.Up(ctx, nil, s) }
	return run.NewReporter(t.Output(), "up", p.ws.Logs()).Run(t.Context(), run.Task{Name: "up", Do: do})
}

// TestUpStarted: who has not started a cluster must not end it, and one that is there by halves is not the one that runs
// afterwards.
func TestUpStarted(t *testing.T) {
	ws, plan := fakeCluster(t)
	t.Cleanup(func() {
		if err := down(t, ws, ""); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []struct {
		name    string
		ready   bool
		started bool
	}{{"no cluster", true, true}, {"runs already", true, false}, {"started by halves", false, true}} {
		if st, err := loadState(ws); err != nil {
			t.Fatal(err)
		} else if st != nil {
			st.Ready = step.ready
			if err := st.save(); err != nil {
				t.Fatal(err)
			}
		}
		p := plan()
		if err := up(t, p); err != nil || (p.Started != "") != step.started {
			t.Errorf("%s: started %q, error %v, want one: %t", step.name, p.Started, err, step.started)
		}
	}
}

// TestDownEndsItsOwn: somebody ends the cluster that was started here, and starts another, before it is ended here.
func TestDownEndsItsOwn(t *testing.T) {
	ws, plan := fakeCluster(t)
	p := plan()
	if err := up(t, p); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(down(t, ws, ""), up(t, plan())); err != nil {
		t.Fatal(err)
	}
	if err := down(t, ws, p.Started); err != nil {
		t.Fatal(err)
	}
	st, err := StatusOf(ws)
	if err != nil || !st.Running {
		t.Errorf("the cluster of somebody else runs: %t, %v", st.Running, err)
	}
	if err := down(t, ws, ""); err != nil {
		t.Error(err)
	}
}

// TestFingerprint: a cluster that runs with other settings or tools is not what is asked for.
func TestFingerprint(t *testing.T) {
	ws, plan := fakeCluster(t)
	testtree.Write(t, ws.Bin(), map[string]string{"containerd": "", "containerd-shim-runc-v2": "", "runc": "", "cni/ptp": ""})
	testtree.Write(t, ws.Components(), map[string]string{"kubelet": "", "kube-proxy": ""})
	of := func(mode Mode) string {
		p := plan()
		p.Mode = mode
		fp, err := p.fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return fp
	}
	write := func(path string) func(t *testing.T) {
		return func(t *testing.T) { testtree.Write(t, "", map[string]string{path: t.Name()}) }
	}
	for name, c := range map[string]struct {
		change func(t *testing.T)
		// same is whether it is still the same cluster, and sameAlone the same for the control plane alone.
		same, sameAlone bool
	}{
		"nothing":              {func(*testing.T) {}, true, true},
		"another terminal":     {func(t *testing.T) { t.Setenv("PATH", "/bin") }, true, true},
		"RUNTIME_CONFIG":       {func(t *testing.T) { t.Setenv("RUNTIME_CONFIG", "api/all=true") }, false, false},
		"EMULATED_VERSION":     {func(t *testing.T) { t.Setenv("EMULATED_VERSION", "1.36") }, false, false},
		"the API server":       {write(filepath.Join(ws.Components(), "kube-apiserver")), false, false},
		"etcd":                 {write(filepath.Join(ws.Bin(), "etcd")), false, false},
		"containerd":           {write(filepath.Join(ws.Bin(), "containerd")), false, true},
		"runc":                 {write(filepath.Join(ws.Bin(), "runc")), false, true},
		"the network of pods":  {write(filepath.Join(ws.Bin(), "cni", "ptp")), false, true},
		"a tool that is apart": {write(filepath.Join(ws.Bin(), "ginkgo")), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			full, alone := of(ModeFull), of(ModeControlPlane)
			c.change(t)
			if got := of(ModeFull) == full; got != c.same {
				t.Errorf("with nodes, the same: %t, want %t", got, c.same)
			}
			if got := of(ModeControlPlane) == alone; got != c.sameAlone {
				t.Errorf("without nodes, the same: %t, want %t", got, c.sameAlone)
			}
		})
	}
}
