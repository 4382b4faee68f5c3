// Package stress runs thousands of pods against a driver whose reports are late,
// lost or doubled, while pods are deleted, binding fails, and the scheduler is
// restarted. An oracle beside the scheduler's plugin watches what must always hold:
//
//   - policy Object: no version of an object is used for two pods, as long as the
//     reservation of the first has not expired;
//   - policy InFlight: no volume is asked for where there is no room;
//   - no object with room for a pod that waits is idle for longer than the expiry
//     and the longest backoff;
//   - at the end, every pod has a node, and every reservation has ended.
//
// go test runs a small number of pods. make test-stress runs 10000, with the race
// detector. What happens to a pod or a report depends on the seed and its name
// only, so a seed gives the same faults again.
package stress
