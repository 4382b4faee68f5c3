package apiservertest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	kubeapiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// stockBinaryEnv names the kube-apiserver that was built from the base without
// the series.
const stockBinaryEnv = "STOCK_KUBE_APISERVER"

const (
	stockStartTimeout = 2 * time.Minute
	stockToken        = "stock"
)

// StartStock starts the stock kube-apiserver as a process. It is stopped at the
// end of the test, if not earlier. A missing binary fails the test, as does one
// that knows our fields: a skipped or pointless test would look like a passed one.
func StartStock(tCtx ktesting.TContext, storage *storagebackend.Config, extra ...string) *Server {
	tCtx.Helper()
	binary := os.Getenv(stockBinaryEnv)
	if binary == "" {
		tCtx.Fatalf("%s is not set; expected the path of a kube-apiserver built from the unpatched base (make test builds it)", stockBinaryEnv)
	}
	dir := tCtx.TempDir()
	flags, port := stockFlags(tCtx, dir, storage)
	process := StartProcess(tCtx, binary, nil, append(flags, extra...)...)

	config := &rest.Config{
		Host:            "https://" + net.JoinHostPort("127.0.0.1", port),
		BearerToken:     stockToken,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // generated at its start, on loopback
		QPS:             1000,
		Burst:           10000,
	}
	config = jsonConfig(config)
	client := clientOrDie(tCtx, config)
	err := wait.PollUntilContextTimeout(tCtx, 100*time.Millisecond, stockStartTimeout, true, func(ctx context.Context) (bool, error) {
		if err, ended := process.Ended(); ended {
			return false, fmt.Errorf("kube-apiserver ended: %v", err)
		}
		if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return false, nil
		}
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		tCtx.Fatalf("stock kube-apiserver does not get ready: %v", err)
	}

	schema, err := client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/storage.k8s.io/v1").DoRaw(tCtx)
	if err != nil {
		tCtx.Fatalf("schema of the stock kube-apiserver: %v", err)
	}
	if bytes.Contains(schema, []byte(`"availableCapacities"`)) {
		tCtx.Fatalf("%s=%s knows availableCapacities; expected a kube-apiserver built from the unpatched base", stockBinaryEnv, binary)
	}

	etcd, _, err := kubeapiservertesting.GetEtcdClients(storage.Transport)
	if err != nil {
		tCtx.Fatalf("etcd client: %v", err)
	}
	stop := sync.OnceFunc(func() {
		etcd.Close()
		process.Stop(tCtx)
	})
	tCtx.Cleanup(stop)
	return &Server{Config: config, Client: client, Etcd: etcd, Prefix: storage.Prefix, stop: stop}
}

// stockFlags writes the files that a kube-apiserver needs to dir, and returns
// its flags and its port.
func stockFlags(tCtx ktesting.TContext, dir string, storage *storagebackend.Config) (flags []string, port string) {
	tCtx.Helper()
	must := func(err error) {
		tCtx.Helper()
		if err != nil {
			tCtx.Fatalf("files of the stock kube-apiserver: %v", err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	must(err)
	keyFile := filepath.Join(dir, "service-account.key")
	must(os.WriteFile(keyFile, pem, 0o600))
	tokenFile := filepath.Join(dir, "tokens.csv")
	must(os.WriteFile(tokenFile, []byte(stockToken+",admin,admin,system:masters\n"), 0o600))
	port, err = freePort()
	must(err)

	return append(framework.DefaultTestServerFlags(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+port,
		"--cert-dir="+dir,
		"--etcd-servers="+storage.Transport.ServerList[0],
		"--etcd-prefix="+storage.Prefix,
		"--token-auth-file="+tokenFile,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://stock.example.com",
		"--service-account-key-file="+keyFile,
		"--service-account-signing-key-file="+keyFile,
		"--service-cluster-ip-range=10.0.0.0/16",
	), port
}

// freePort returns a port that was free a moment ago. Ports are given out in
// turn, so it stays free for long enough.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
