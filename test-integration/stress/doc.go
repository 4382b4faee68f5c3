// SPDX-License-Identifier: Apache-2.0

// Package stress runs pods against drivers whose reports are late, lost or doubled,
// while pods are deleted, binding fails, and, in a test of its own, the scheduler is
// killed or cut off, has to list again, or the API server is away. There is not
// enough room for all pods that wait. From outside, it watches what must hold:
//
//   - no volume is asked for where there is no room; without confirmation, 1 of 1000
//     may be, because nobody knows to which volumes a report is due, and 1 of 8 with
//     the policy Object, because any report ends its reservations; restarts have a bound,
//     because a request of a scheduler that is dead may arrive late;
//   - no pod waits while a node has room for it to which nothing is in flight, for
//     longer than the reservation timeout and the longest backoff; without confirmation,
//     the policy InFlight may take volumes younger than the timeout for in flight;
//   - at the end, every pod has had a node, and everything is free again.
//
// With the feature gate off, the same pods have to get nodes without room.
//
// go test runs a small number of pods, with the default policy. make test LONG=1 runs thousands,
// with each policy and the race detector. What happens to a pod or a report depends on the seed and its name
// only, so a seed gives the same faults again.
package stress
