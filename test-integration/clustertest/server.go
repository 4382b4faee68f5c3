// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"fmt"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// gate is the name of the feature gate. It is not taken from the tree's
// features package, so that a renamed gate breaks a test.
const gate = "CSIStorageCapacityV2"

// Server is a kube-apiserver that serves.
type Server struct {
	// Config is that of an administrator, for JSON.
	Config *rest.Config
	// Client speaks JSON.
	Client  kubernetes.Interface
	Process *Process

	prefix string // of its keys in etcd
	stop   func()
}

// Stop ends the server and returns when it has ended. It may be called again.
func (s *Server) Stop() { s.stop() }

// ClientFor returns a client that sends and asks for contentType.
func (s *Server) ClientFor(tCtx ktesting.TContext, contentType string) kubernetes.Interface {
	tCtx.Helper()
	config := rest.CopyConfig(s.Config)
	config.ContentType = contentType
	config.AcceptContentTypes = contentType
	client, err := kubernetes.NewForConfig(config)
	tCtx.ExpectNoError(err, "client for "+contentType)
	return client
}

// StartProgram starts a kube-apiserver. It is stopped at the end of the test, if not earlier. The flags are added to those
// that the server needs.
func StartProgram(tCtx ktesting.TContext, binary string, storage *Storage, flags ...string) *Server {
	tCtx.Helper()
	server, err := startServer(tCtx, binary, tCtx.TempDir(), storage, append([]string{"--authorization-mode=RBAC"}, flags...)...)
	tCtx.ExpectNoError(err, "start an API server")
	server.Process.endWith(tCtx)
	server.stop = sync.OnceFunc(func() { server.Process.Stop(tCtx) })
	return server
}

// StartGateOn starts the patched kube-apiserver with the feature gate on. It is stopped at the end of the test, if not
// earlier. The flags are added to those that the server needs.
func StartGateOn(tCtx ktesting.TContext, storage *Storage, flags ...string) *Server {
	tCtx.Helper()
	return startTarget(tCtx, target(tCtx), storage, flags)
}

// StartGateOff is [StartGateOn] with the feature gate off.
func StartGateOff(tCtx ktesting.TContext, storage *Storage, flags ...string) *Server {
	tCtx.Helper()
	t := target(tCtx)
	if t == targetPatched {
		t = targetGateOff
	}
	return startTarget(tCtx, t, storage, flags)
}

// StartStock starts the kube-apiserver that was built from the base without the series, as [StartGateOn] does with the patched
// one.
func StartStock(tCtx ktesting.TContext, storage *Storage, flags ...string) *Server {
	tCtx.Helper()
	return startTarget(tCtx, targetStock, storage, flags)
}

func startTarget(tCtx ktesting.TContext, target string, storage *Storage, flags []string) *Server {
	tCtx.Helper()
	server := StartProgram(tCtx, targetProgram(tCtx, target), storage, append(targetFlags(target), flags...)...)
	server.expectTarget(tCtx, target)
	return server
}

// targetProgram returns the path of the kube-apiserver of a target.
func targetProgram(tCtx ktesting.TContext, target string) string {
	tCtx.Helper()
	folder := "COMPONENTS"
	if target == targetStock {
		folder = "STOCK_COMPONENTS"
	}
	return Program(tCtx, folder, "kube-apiserver")
}

// targetFlags are those that turn the feature on or off. The stock server does not know its gate.
func targetFlags(target string) []string {
	if target == targetStock {
		return nil
	}
	return []string{fmt.Sprintf("--feature-gates=%s=%t", gate, target == targetPatched)}
}

// expectTarget fails the test if the stock server knows our fields, or the patched one does not: a pointless test would look
// like a passed one.
func (s *Server) expectTarget(tCtx ktesting.TContext, target string) {
	tCtx.Helper()
	if knows := s.KnowsFields(tCtx); knows != (target != targetStock) {
		tCtx.Fatalf("%s knows availableCapacities: %t; that is not the program for the target %q", s.Process.cmd.Path, knows, target)
	}
}

// KnowsFields tells whether the schema of the server has our fields.
func (s *Server) KnowsFields(tCtx ktesting.TContext) bool {
	tCtx.Helper()
	schema, err := s.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/storage.k8s.io/v1").DoRaw(tCtx)
	tCtx.ExpectNoError(err, "schema of the kube-apiserver")
	return bytes.Contains(schema, []byte(`"availableCapacities"`))
}
