// SPDX-License-Identifier: Apache-2.0

// Package faults holds the whole chain to its promises while its parts are killed and paused:
// pods with new volumes come and go, a drained node's volumes are rebuilt, and there are two
// schedulers of which one leads. make e2e LONG=1 brings up the cluster for it, and runs
// it. The order of the faults comes from a seed.
//
// The test replaces the scheduler of the cluster, so no other tests may run beside it.
package faults
