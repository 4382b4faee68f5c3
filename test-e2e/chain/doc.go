// Package chain measures what users get from the whole chain: the reference driver
// reports its pools, external-provisioner publishes and confirms them, the scheduler
// decides, and the kubelet runs the pods. What the drivers were asked for is checked against their
// pools at the end of each scenario (package history). make bench SUITE=chain brings up the cluster for it, runs
// it, and writes docs/benchmarks/chain.md.
//
// The tests replace the scheduler of the cluster, so no other tests may run beside them.
package chain
