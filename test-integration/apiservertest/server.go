package apiservertest

import (
	"fmt"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// gate is the name of the feature gate. It is not taken from the tree's
// features package, so that a renamed gate breaks a test.
const gate = "CSIStorageCapacityV2"

// Server is a kube-apiserver that serves.
type Server struct {
	// Config is that of an administrator, without a content type.
	Config *rest.Config
	// Client speaks JSON.
	Client kubernetes.Interface
	// Etcd reads what the server stored; keys start with Prefix.
	Etcd   *clientv3.Client
	Prefix string
	// Process is nil for a server inside of the test binary.
	Process *Process

	stop func()
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
	if err != nil {
		tCtx.Fatalf("client for %s: %v", contentType, err)
	}
	return client
}

// NewStorage returns a storage of its own in the test's etcd. Servers that are
// started with the same storage see the same objects.
func NewStorage() *storagebackend.Config { return framework.SharedEtcd() }

// StartGateOn starts the patched kube-apiserver with the feature gate on. It is
// stopped at the end of the test, if not earlier. Only servers whose feature gates
// are the default (see [Main]) can run at the same time, because feature gates are
// global in a process. The flags are added to those that the server needs.
func StartGateOn(tCtx ktesting.TContext, storage *storagebackend.Config, flags ...string) *Server {
	tCtx.Helper()
	switch target(tCtx) {
	case targetStock:
		return StartStock(tCtx, storage, flags...)
	case targetGateOff:
		return startPatched(tCtx, storage, false, flags)
	}
	return startPatched(tCtx, storage, true, flags)
}

// StartGateOff is [StartGateOn] with the feature gate off.
func StartGateOff(tCtx ktesting.TContext, storage *storagebackend.Config, flags ...string) *Server {
	tCtx.Helper()
	if target(tCtx) == targetStock {
		return StartStock(tCtx, storage, flags...)
	}
	return startPatched(tCtx, storage, false, flags)
}

func startPatched(tCtx ktesting.TContext, storage *storagebackend.Config, enabled bool, flags []string) *Server {
	tCtx.Helper()
	flags = slices.Concat(framework.DefaultTestServerFlags(), flags, []string{fmt.Sprintf("--feature-gates=%s=%t", gate, enabled)})
	started, err := kubeapiservertesting.StartTestServer(tCtx, nil, flags, storage)
	if err != nil {
		tCtx.Fatalf("start kube-apiserver with %s=%t: %v", gate, enabled, err)
	}
	stop := sync.OnceFunc(started.TearDownFn)
	tCtx.Cleanup(stop)
	return &Server{
		Config: jsonConfig(started.ClientConfig),
		Client: clientOrDie(tCtx, jsonConfig(started.ClientConfig)),
		Etcd:   started.EtcdClient,
		Prefix: started.EtcdStoragePrefix,
		stop:   stop,
	}
}

// jsonConfig returns a copy of config that speaks JSON. The test server's own
// configuration is for protobuf.
func jsonConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	return config
}

func clientOrDie(tCtx ktesting.TContext, config *rest.Config) kubernetes.Interface {
	tCtx.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		tCtx.Fatalf("client: %v", err)
	}
	return client
}
