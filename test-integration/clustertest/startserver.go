// SPDX-License-Identifier: Apache-2.0

package clustertest

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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

const (
	programStartTimeout = 5 * time.Minute
	programToken        = "program"
)

// startServer starts a kube-apiserver, whose files are in a folder, and returns when it serves. The flags are added to those that
// it needs.
func startServer(ctx context.Context, binary, dir string, storage *Storage, flags ...string) (*Server, error) {
	needed, port, err := neededFlags(dir, storage)
	if err != nil {
		return nil, fmt.Errorf("files of kube-apiserver: %w", err)
	}
	process, err := startProcess(binary, filepath.Join(dir, "kube-apiserver.log"), []string{"GOGC=400"}, append(needed, flags...)...)
	if err != nil {
		return nil, err
	}
	s := &Server{prefix: storage.prefix, Process: process, Config: &rest.Config{
		Host:            "https://" + net.JoinHostPort("127.0.0.1", port),
		BearerToken:     programToken,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // generated at its start, on loopback
		QPS:             1000,
		Burst:           10000,
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	}}
	if s.Client, err = kubernetes.NewForConfig(s.Config); err != nil {
		return nil, err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, programStartTimeout, true, func(ctx context.Context) (bool, error) {
		if err, ended := process.Ended(); ended {
			return false, fmt.Errorf("it has ended: %v", err)
		}
		if _, last = s.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); last != nil {
			return false, nil
		}
		_, last = s.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		_ = process.end()
		return nil, fmt.Errorf("%s does not serve: %w; last: %v; it says: %s", binary, err, last, process.Log())
	}
	return s, nil
}

// neededFlags writes the files that a kube-apiserver needs to dir, and returns its flags and its port.
func neededFlags(dir string, storage *Storage) (flags []string, port string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, "", err
	}
	keyFile, tokenFile := filepath.Join(dir, "service-account.key"), filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(keyFile, pem, 0o600); err != nil {
		return nil, "", err
	}
	if err := os.WriteFile(tokenFile, []byte(programToken+",admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, "", err
	}
	if port, err = FreePort(); err != nil {
		return nil, "", err
	}
	return []string{
		"--endpoint-reconciler-type=none",            // of an address on loopback, which no endpoint may have
		"--disable-admission-plugins=ServiceAccount", // nobody creates accounts
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + port,
		"--cert-dir=" + dir,
		"--etcd-servers=" + etcdURL,
		"--etcd-prefix=" + storage.prefix,
		"--token-auth-file=" + tokenFile,
		"--service-account-issuer=https://program.example.com",
		"--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile,
		"--service-cluster-ip-range=10.0.0.0/16",
	}, port, nil
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
