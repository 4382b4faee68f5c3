// SPDX-License-Identifier: Apache-2.0

// Package server has the gRPC services of a node: identity, controller and node service of CSI.
//
// The controller service is on every node, because only the node knows its pools:
// external-provisioner runs beside it with --node-deployment.
package server
