package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"capacityv2.internal/scripts/machine"
	"capacityv2.internal/scripts/node"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/workspace"
)

// InitVerb is the hidden verb under which the program runs [node.Init] with one
// argument.
const InitVerb = "node-init"

// upTime is how long a cluster may take to be ready on a slow machine.
const upTime = 6 * time.Minute

// components are what upstream's script runs.
var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

var nodeComponents = []string{"kubelet", "kube-proxy"}

// Components returns what a cluster with a node runs.
func Components() []string { return slices.Concat(components, nodeComponents) }

// Up starts the prepared cluster and waits until it serves. A cluster that runs the
// same components with the same settings already is left alone. When it fails or ctx
// ends, all that it started is taken away.
func (p *Plan) Up(ctx context.Context, s *progress.Step) error {
	ws := p.ws
	st, err := loadState(ws)
	if err != nil {
		return err
	}
	fp, err := fingerprint(p)
	if err != nil {
		return err
	}
	if st != nil {
		done, err := p.lookAtRunning(ctx, st, fp, s)
		if done || err != nil {
			return err
		}
	}
	st = &state{ID: newID(), Fingerprint: fp, Mode: p.Mode, Nodes: p.nodes, Gates: p.options.Gates, Started: time.Now().UTC().Truncate(time.Second),
		Kubeconfig: placesOf(ws).kubeconfig(), Components: p.options.Components}
	if err = p.bringUp(ctx, st, s); err == nil {
		return nil
	}
	s.Sayf("taking away what was started")
	if downErr := takeDown(context.WithoutCancel(ctx), ws, io.Discard); downErr != nil {
		err = errors.Join(err, fmt.Errorf("taking away what was started: %w", downErr))
	}
	return err
}

// lookAtRunning decides what to do beside a recorded cluster: nothing more (done),
// refuse, or go on, where nothing of it runs any more.
func (p *Plan) lookAtRunning(ctx context.Context, st *state, fp string, s *progress.Step) (done bool, err error) {
	ws := p.ws
	if st.Starter.Alive() {
		return false, progress.Refuse(fmt.Sprintf("another make up (pid %d) is at work on %s", st.Starter.PID, ws.Cluster()), "one at a time", "wait for it, or end it")
	}
	if st.alive() && st.Ready {
		if st.Fingerprint != fp || st.Mode != p.Mode {
			return false, progress.Refuse("the running cluster has other components, images, gates or another mode", "the same settings, or no cluster", "make down, then make up")
		}
		if st.Nodes != p.nodes {
			return false, progress.Refuse("a cluster with "+countNodes(st.Nodes)+" runs", "one with "+countNodes(p.nodes)+", or no cluster",
				fmt.Sprintf("make down, then make up NODES=%d", p.nodes))
		}
		if err := ready(ctx, st); err != nil {
			return false, progress.Refuse("a cluster runs, but does not serve: "+err.Error(), "a cluster that serves, or none", "make down, then make up; logs: "+placesOf(ws).logs())
		}
		s.Sayf("it runs already, and nothing has changed")
		return true, nil
	}
	s.Sayf("taking away an earlier cluster that did not end well")
	return false, takeDown(ctx, ws, s.Log)
}

func (p *Plan) bringUp(ctx context.Context, st *state, s *progress.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upTime, fmt.Errorf("not ready after %s", upTime))
	defer cancel()
	l := newLaunched()
	defer l.close()
	ws := p.ws
	self, err := machine.NewProcess("make up", os.Getpid(), st.ID)
	if err != nil {
		return err
	}
	st.Starter = self
	// What an earlier cluster left, logs too.
	if err := os.RemoveAll(ws.Cluster()); err != nil {
		return err
	}
	if err := placesOf(ws).make(); err != nil {
		return err
	}
	if err := st.save(ws); err != nil {
		return err
	}
	if err := launch(ctx, ws, p, st, l, s); err != nil {
		return err
	}
	if err := waitReady(ctx, ws, st, l); err != nil {
		return fmt.Errorf("%w\n  logs of the cluster: %s", err, placesOf(ws).logs())
	}
	st.Ready, st.Starter = true, machine.Process{}
	return st.save(ws)
}

// launch starts the cluster's processes, in the way of the mode.
func launch(ctx context.Context, ws workspace.Workspace, p *Plan, st *state, l *launched, s *progress.Step) error {
	sc := script{ws: ws, options: *p.options, mode: p.Mode, ports: p.ports, mark: st.ID, cgroupV1: machine.CgroupV1(), defaultRoute: machine.HasDefaultRoute()}
	switch p.Mode {
	case ModeControlPlane:
		if err := st.willMake(ws, node.FlexVolumes); err != nil {
			return err
		}
		return startPlain(ws, sc, st, l)
	case ModeHost:
		if err := recordHost(ws, st); err != nil {
			return err
		}
		return startPlain(ws, sc, st, l)
	}
	return startFull(ctx, ws, p, sc, st, l, s)
}

// willMake records the folders that are about to be made on the host for dir.
func (st *state) willMake(ws workspace.Workspace, dir string) error {
	st.Folders = append(st.Folders, machine.MissingFolders(dir, machine.Exists)...)
	return st.save(ws)
}

// newID returns six hexadecimal digits.
func newID() string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// fingerprint stands for the components' content and the plan's settings. It
// refuses when a component is missing.
func fingerprint(p *Plan) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, p.options.Gates, p.options.RuntimeEndpoint, p.ports)
	names := components
	if p.Mode.HasNode() {
		names = Components()
	}
	for _, n := range names {
		f, err := os.Open(filepath.Join(p.options.Components, n))
		if err != nil {
			return "", progress.Refuse("no "+n+" in "+p.options.Components, "the built components", "make up, which builds them")
		}
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
	}
	for _, i := range p.options.Images {
		if err := i.Sum(h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
