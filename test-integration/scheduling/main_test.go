// Package scheduling tests from outside where the scheduler puts pods with new
// volumes, with drivers that really have the space that they publish, or not.
package scheduling

import (
	"testing"

	"capacityv2.internal/test-integration/apiservertest"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }
