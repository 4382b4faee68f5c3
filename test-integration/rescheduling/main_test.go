// Package rescheduling tests from outside what happens to pods with bound volumes
// whose nodes cannot be used any more, with a driver that can rebuild the volumes
// elsewhere.
package rescheduling

import (
	"testing"

	"capacityv2.internal/test-integration/apiservertest"
)

func TestMain(m *testing.M) { apiservertest.Main(m, "MutablePVNodeAffinity") }
