// SPDX-License-Identifier: Apache-2.0

// Package publishing tests what a real external-provisioner publishes beside a real API server, with drivers whose controller
// answers for all nodes, and without kubelets.
//
// Some tests are about objects that an earlier provisioner has left, or that the API server refuses and a fake client accepts.
// Others have a driver that fails, and hold the provisioner up at certain points: when a volume was created and not confirmed,
// and when the capacity is known and not written. Others are about numbers: of what watchers get, and of schedulers, each with
// pods of its own.
//
// Environment: COMPONENTS is the folder with kube-scheduler and external-provisioner, with the series.
package publishing
