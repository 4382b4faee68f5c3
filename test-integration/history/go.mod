// A module of its own: test-integration and test-e2e use it, and neither requires the other.
module capacityv2.internal/test-integration/history

go 1.26.0

require github.com/anishathalye/porcupine v1.3.0
