// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// servers are the API servers of the package.
var servers = pool{idle: map[string][]*borrowable{}}

// pool has API servers that tests borrow, one after the other. To start one takes longer than most tests.
type pool struct {
	dir   string
	mutex sync.Mutex
	// idle are those that nobody has, by their program and flags.
	idle map[string][]*borrowable
	all  []*borrowable
}

// borrowable is a server that is wiped after each test.
type borrowable struct {
	*Server
	// own are the keys of what it stores by itself.
	own sets.Set[string]
	// last is the test that had it before.
	last string
}

// borrow returns a server that stores nothing, until the test ends. A test that leaves something there in spite of that fails.
func (p *pool) borrow(tCtx ktesting.TContext, target string, flags []string) *Server {
	tCtx.Helper()
	binary := targetProgram(tCtx, target)
	key := strings.Join(append([]string{binary}, flags...), " ")
	b := p.take(key)
	if b == nil {
		b = p.start(tCtx, binary, flags)
		b.expectTarget(tCtx, target)
	}
	left, err := b.left(tCtx)
	tCtx.ExpectNoError(err, "what the API server stores")
	if len(left) > 0 {
		tCtx.Fatalf("the API server still stores %q of %s", left, b.last)
	}
	b.last = tCtx.Name()
	tCtx.Cleanup(func() {
		if tCtx.Failed() {
			tCtx.Logf("end of the log of kube-apiserver:\n%s", b.Process.Log())
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := b.wipe(ctx); err != nil {
			tCtx.Errorf("wipe the API server: %v", err)
			return // nobody gets it any more
		}
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.idle[key] = append(p.idle[key], b)
	})
	server := *b.Server
	server.Config = rest.CopyConfig(b.Config)
	return &server
}

func (p *pool) take(key string) *borrowable {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	n := len(p.idle[key])
	if n == 0 {
		return nil
	}
	b := p.idle[key][n-1]
	p.idle[key] = p.idle[key][:n-1]
	return b
}

func (p *pool) start(tCtx ktesting.TContext, binary string, flags []string) *borrowable {
	tCtx.Helper()
	dir, err := os.MkdirTemp(p.dir, "server")
	tCtx.ExpectNoError(err, "folder of the API server")
	server, err := startServer(tCtx, binary, dir, NewStorage(), flags...)
	tCtx.ExpectNoError(err, "start an API server")
	b := &borrowable{Server: server}
	p.mutex.Lock()
	p.all = append(p.all, b)
	p.mutex.Unlock()
	_, err = b.Client.CoreV1().Namespaces().Create(tCtx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: podNamespace}}, metav1.CreateOptions{})
	tCtx.ExpectNoError(err, "create namespace")
	tCtx.ExpectNoError(b.settle(tCtx), "what the API server stores by itself")
	return b
}

// stop ends all of them at once.
func (p *pool) stop() error {
	var group sync.WaitGroup
	errs := make([]error, len(p.all))
	for i, b := range p.all {
		group.Go(func() { errs[i] = b.Process.end() })
	}
	group.Wait()
	return errors.Join(errs...)
}
