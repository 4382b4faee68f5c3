package apiservertest

import (
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

const (
	programStartTimeout = 2 * time.Minute
	programToken        = "program"
)

// StartProgram starts a kube-apiserver as a process. It is stopped at the end of the test, if not
// earlier. The flags are added to those that the server needs.
func StartProgram(tCtx ktesting.TContext, binary string, storage *storagebackend.Config, flags ...string) *Server {
	tCtx.Helper()
	needed, port := programFlags(tCtx, tCtx.TempDir(), storage)
	process := StartProcess(tCtx, binary, nil, append(needed, flags...)...)

	config := &rest.Config{
		Host:            "https://" + net.JoinHostPort("127.0.0.1", port),
		BearerToken:     programToken,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // generated at its start, on loopback
		QPS:             1000,
		Burst:           10000,
	}
	config = jsonConfig(config)
	client := clientOrDie(tCtx, config)
	err := wait.PollUntilContextTimeout(tCtx, 100*time.Millisecond, programStartTimeout, true, func(ctx context.Context) (bool, error) {
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
		tCtx.Fatalf("%s does not get ready: %v", binary, err)
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
	return &Server{Config: config, Client: client, Etcd: etcd, Prefix: storage.Prefix, Process: process, stop: stop}
}

// programFlags writes the files that a kube-apiserver needs to dir, and returns
// its flags and its port.
func programFlags(tCtx ktesting.TContext, dir string, storage *storagebackend.Config) (flags []string, port string) {
	tCtx.Helper()
	must := func(err error) {
		tCtx.Helper()
		if err != nil {
			tCtx.Fatalf("files of kube-apiserver: %v", err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	must(err)
	keyFile := filepath.Join(dir, "service-account.key")
	must(os.WriteFile(keyFile, pem, 0o600))
	tokenFile := filepath.Join(dir, "tokens.csv")
	must(os.WriteFile(tokenFile, []byte(programToken+",admin,admin,system:masters\n"), 0o600))
	port, err = FreePort()
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
		"--service-account-issuer=https://program.example.com",
		"--service-account-key-file="+keyFile,
		"--service-account-signing-key-file="+keyFile,
		"--service-cluster-ip-range=10.0.0.0/16",
	), port
}

// FreePort returns a port that was free a moment ago. Ports are given out in
// turn, so it stays free for long enough.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
