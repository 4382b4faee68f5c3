// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	corev1 "k8s.io/api/core/v1"
)

// root is the repository's top folder: go test runs in the package's.
const root = "../.."

// cluster is the cluster under test, with a namespace for one test.
type cluster struct {
	kubernetes.Interface
	kubectlPath, kubeconfig string
	// Namespace is deleted after the test.
	Namespace string
	// Suffix is part of every name without a namespace.
	Suffix string
}

// connect returns the cluster that KUBECONFIG names.
func connect(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{kubeconfig: os.Getenv("KUBECONFIG"), kubectlPath: os.Getenv("KUBECTL"), Suffix: rand.String(5)}
	if c.kubeconfig == "" {
		t.Fatal("KUBECONFIG is not set; expected: the kubeconfig of a cluster (make up), or run: make e2e")
	}
	if c.kubectlPath == "" {
		path, err := filepath.Abs(filepath.Join(root, "_work", "components", "kubectl"))
		if err != nil {
			t.Fatal(err)
		}
		c.kubectlPath = path
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if c.Interface, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + c.Suffix}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Namespace = ns.Name
	c.cleanup(t, "namespace "+ns.Name, func(ctx context.Context) error {
		return c.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})
	})
	return c
}

// cleanup runs f when the test has ended, whatever became of its context.
func (c *cluster) cleanup(t *testing.T, what string, f func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := f(ctx); err != nil {
			t.Errorf("remove %s: %v", what, err)
		}
	})
}

// kubectl runs kubectl in the test's namespace with the given input. err holds
// what it wrote to standard error.
func (c *cluster) kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.kubectlPath, append([]string{"--kubeconfig", c.kubeconfig, "--namespace", c.Namespace}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errOut
	// Of its own: a cache from another cluster knows other resources.
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+t.TempDir())
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), nil
}

// mustKubectl is kubectl where an error ends the test.
func (c *cluster) mustKubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := c.kubectl(t, input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eventually polls f until it returns nil, and ends the test with f's last error
// when that takes longer than d.
func eventually(t *testing.T, d time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(d)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", d, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
