// Package chain measures what users get from the whole chain: the reference driver
// reports its pools, external-provisioner publishes and confirms them, the scheduler
// decides, and the kubelet runs the pods. make bench SUITE=chain brings up the cluster for it, runs
// it, and writes docs/benchmarks/chain.md.
//
// The tests replace the scheduler of the cluster, so no other tests may run beside them.
package chain
