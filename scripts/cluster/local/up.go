// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
)

// InitVerb is the hidden verb under which the program runs [node.Init] with one
// argument.
const InitVerb = "node-init"

// upTime is how long a cluster may take to be ready on a slow machine.
const upTime = 6 * time.Minute

// components are what upstream's script runs.
var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

// Components returns what a cluster with a node runs.
func Components() []string { return slices.Concat(components, []string{"kubelet", "kube-proxy"}) }

// Up starts the prepared cluster and waits until it serves. A cluster that runs the
// same components with the same settings already is left alone. When it fails or ctx
// ends, all that it started is taken away. Every node has the images beside that of pause.
func (p *Plan) Up(ctx context.Context, images []node.Image, s *run.Step) error {
	p.images = images
	held, err := lock(p.ws)
	if err != nil {
		return err
	}
	defer held.Close()
	st, err := loadState(p.ws)
	if err != nil {
		return err
	}
	fp, err := p.fingerprint()
	if err != nil {
		return err
	}
	if st != nil {
		done, err := p.lookAtRunning(ctx, st, fp, s)
		if done || err != nil {
			return err
		}
	}
	st = &state{ID: newID(), Fingerprint: fp, Mode: p.Mode, Nodes: p.nodes, Gates: p.options.Gates, Components: p.options.Components, ws: p.ws}
	if err = p.bringUp(ctx, st, s); err == nil {
		p.Started = st.ID
		return nil
	}
	s.Sayf("taking away what was started")
	if downErr := st.takeDown(context.WithoutCancel(ctx)); downErr != nil {
		err = errors.Join(err, fmt.Errorf("taking away what was started: %w", downErr))
	}
	return err
}

// lookAtRunning decides what to do beside a recorded cluster: nothing more (done),
// refuse, or go on, where nothing of it runs any more.
func (p *Plan) lookAtRunning(ctx context.Context, st *state, fp string, s *run.Step) (done bool, err error) {
	if !st.Ready || !machine.Alive(st.ID) {
		s.Sayf("taking away an earlier cluster that did not end well")
		return false, st.takeDown(ctx)
	}
	if st.Fingerprint != fp || st.Mode != p.Mode || st.Nodes != p.nodes {
		return false, run.Refuse("the running cluster ("+st.Mode.Describe(st.Nodes)+") has other programs, images, settings, nodes or another mode",
			"the same ones, or no cluster", "make down, then the same command again")
	}
	if err := st.serves(ctx); err != nil {
		return false, run.Refuse("a cluster runs, but does not serve: "+err.Error(),
			"a cluster that serves, or none", "make down, then make up; logs: "+placesOf(p.ws).logs())
	}
	s.Sayf("it runs already, and nothing has changed")
	return true, nil
}

func (p *Plan) bringUp(ctx context.Context, st *state, s *run.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upTime, fmt.Errorf("not ready after %s", upTime))
	defer cancel()
	// What an earlier cluster left, logs too.
	if err := os.RemoveAll(p.ws.Cluster()); err != nil {
		return err
	}
	if err := st.save(); err != nil {
		return err
	}
	if err := placesOf(p.ws).make(); err != nil {
		return err
	}
	l := &launched{ended: make(chan error, maxNodes)}
	defer l.close()
	sc := script{ws: p.ws, options: p.options, mode: p.Mode, ports: p.ports, mark: st.ID, defaultRoute: machine.HasDefaultRoute()}
	var err error
	if p.Mode == ModeFull {
		err = l.startNodes(ctx, p, sc, st, s)
	} else {
		err = l.startControlPlane(sc, st)
	}
	if err != nil {
		return err
	}
	if err := l.waitReady(ctx, st); err != nil {
		return fmt.Errorf("%w\n  logs of the cluster: %s", err, placesOf(p.ws).logs())
	}
	st.Ready = true
	return st.save()
}

// newID returns six hexadecimal digits.
func newID() string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// fingerprint stands for the content of all programs of the cluster and for its settings, as far as they are not those of
// one run. It refuses when a program is missing.
func (p *Plan) fingerprint() (string, error) {
	h := sha256.New()
	// Any node and route: their addresses are of one run.
	n := node.New(p.ws.Cluster(), netip.MustParsePrefix("192.0.2.0/24"), 1)
	sc := script{ws: p.ws, options: p.options, mode: p.Mode, ports: p.ports, node: n, defaultRoute: true}
	env := slices.DeleteFunc(sc.env(), func(v string) bool { return strings.HasPrefix(v, "PATH=") }) // of one terminal
	configuration, err := node.Configuration()
	if err != nil {
		return "", err
	}
	fmt.Fprintln(h, env, sc.joiningPrograms(n, ""), configuration)
	programs := []string{filepath.Join(p.ws.Bin(), "etcd")}
	if p.Mode == ModeFull {
		for _, pattern := range []string{"containerd*", "runc", "cni/*"} {
			found, err := filepath.Glob(filepath.Join(p.ws.Bin(), pattern))
			if err != nil {
				return "", err
			}
			programs = append(programs, found...)
		}
	}
	for _, name := range p.Components() {
		programs = append(programs, filepath.Join(p.options.Components, name))
	}
	for _, program := range programs {
		if err := files.Copy(h, program); err != nil {
			return "", run.Refuse(err.Error(), "the built programs", "make up, which builds them")
		}
	}
	for _, i := range p.images {
		if err := i.Sum(h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
