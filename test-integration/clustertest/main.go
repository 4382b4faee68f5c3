// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// defaultGates are those of all servers that tests of the package borrow, beside that of the feature.
var defaultGates []string

// Main runs the tests of a package with an etcd of their own, and ends the API servers that they have borrowed; `etcd`
// has to be in PATH. Call it from TestMain. It does not return.
//
// The feature gate is on by default then, and so are the other gates that are named.
func Main(m *testing.M, gates ...string) {
	defaultGates = gates
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(max(code, 1))
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	enabled := map[string]bool{gate: os.Getenv(targetEnv) == targetPatched}
	for _, name := range defaultGates {
		enabled[name] = true
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(enabled); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "clustertest")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	stopEtcd, err := startEtcd(dir)
	if err != nil {
		return 1, fmt.Errorf("etcd: %w", err)
	}
	servers.dir = dir
	code = m.Run()
	return code, errors.Join(servers.stop(), stopEtcd())
}
