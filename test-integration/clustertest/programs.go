// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/kubernetes/test/utils/ktesting"
)

// Program returns the path of a program in the folder that an environment variable names. A missing one
// fails the test: a skipped test would look like a passed one.
func Program(tCtx ktesting.TContext, variable, name string) string {
	tCtx.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		tCtx.Fatalf("%s is not set; make test sets it", variable)
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		tCtx.Fatalf("%v; make test builds it", err)
	}
	return path
}

// SchedulerConfig returns a configuration of kube-scheduler that has pods tried again soon. Everything else is the
// default; more lines can follow.
func SchedulerConfig(kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`, kubeconfig)
}

// WriteSchedulerConfig writes a configuration for --config, and returns its path.
func WriteSchedulerConfig(tCtx ktesting.TContext, text string) string {
	tCtx.Helper()
	path := filepath.Join(tCtx.TempDir(), "scheduler.yaml")
	tCtx.ExpectNoError(os.WriteFile(path, []byte(text), 0o600), "configuration of the scheduler")
	return path
}

// ManagerFlags are those of a kube-controller-manager that runs some controllers.
func ManagerFlags(kubeconfig, controllers string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--controllers=" + controllers,
		"--pvclaimbinder-sync-period=5s", "--kube-api-qps=1000", "--kube-api-burst=1000",
	}
}
