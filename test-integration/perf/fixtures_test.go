// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"os"
	"path/filepath"
	"runtime"
)

// useFixtureFolder gives upstream's test server a folder for its serving certificate. It looks for one beside its own source
// file, whose path is unknown in a binary built with -trimpath, unless two variables of Bazel complete it.
func useFixtureFolder() (cleanup func(), err error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || filepath.IsAbs(file) {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "perf")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "k8s.io/kubernetes/cmd/kube-apiserver/app/testing/testdata"), 0o755); err != nil {
		return nil, err
	}
	os.Setenv("TEST_SRCDIR", filepath.Dir(dir))
	os.Setenv("TEST_WORKSPACE", filepath.Base(dir))
	return func() { os.RemoveAll(dir) }, nil
}
