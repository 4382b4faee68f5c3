package apiservertest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/test/integration/framework"
)

// etcdURLEnv is where the framework looks for an etcd that already runs.
const etcdURLEnv = "KUBE_INTEGRATION_ETCD_URL"

// Main runs the tests of a package with an etcd of their own; `etcd` has to be
// in PATH. Call it from TestMain. It does not return.
//
// The feature gate is on by default then, and so are the other gates that are named.
// Servers whose gates are the default can run at the same time.
func Main(m *testing.M, gates ...string) {
	enabled := map[string]bool{gate: os.Getenv(targetEnv) == targetPatched}
	for _, name := range gates {
		enabled[name] = true
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(enabled); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(etcdURLEnv) == "" {
		// The framework uses what listens on etcd's usual port, which may be
		// the etcd of somebody's cluster. Nothing listens on port 0.
		os.Setenv(etcdURLEnv, "http://127.0.0.1:0")
	}
	framework.EtcdMain(func() int { return WithFixtures(m.Run) })
}

// WithFixtures runs tests with the files that upstream's test server needs. It is
// for packages that start their etcd themselves; [Main] has it in it.
func WithFixtures(run func() int) int {
	cleanup, err := useFixtureFolder()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cleanup()
	return run()
}

// useFixtureFolder gives the upstream test server a folder for its serving
// certificate. It looks for one beside its own source file, whose path is
// unknown in a binary built with -trimpath, unless two variables of Bazel
// complete it.
func useFixtureFolder() (cleanup func(), err error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || filepath.IsAbs(file) {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "apiservertest")
	if err != nil {
		return nil, err
	}
	testdata := filepath.Join(dir, "k8s.io/kubernetes/cmd/kube-apiserver/app/testing/testdata")
	if err := os.MkdirAll(testdata, 0o755); err != nil {
		return nil, err
	}
	os.Setenv("TEST_SRCDIR", filepath.Dir(dir))
	os.Setenv("TEST_WORKSPACE", filepath.Base(dir))
	return func() { os.RemoveAll(dir) }, nil
}
