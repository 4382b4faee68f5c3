// Package api tests the API of KEP-5925 from outside: what a client of a real
// kube-apiserver sees, and what survives in etcd.
package api

import (
	"testing"

	"capacityv2.internal/test-integration/apiservertest"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }
