// SPDX-License-Identifier: Apache-2.0

// Package perf measures the scheduler with capacity objects, as workloads of
// upstream's scheduler_perf: one object for each node and class, one new volume for each
// pod, a driver that publishes after each volume. Upstream has no such workload.
// Benchmarks measure what the scheduler keeps for each object and each volume in flight.
//
// go test runs the small workloads, to see that they work. make bench runs the
// large ones and writes the report.
package perf
