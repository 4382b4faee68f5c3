// SPDX-License-Identifier: Apache-2.0

// Package modeldriver models CSI drivers with pools. What a driver really has is on its disks, and
// that decides whether there is room for a volume: a decision of the scheduler that the disks do not
// allow is a volume that was refused, and tests count these. What the driver says of them may be late,
// constant, or one number instead of pools, as [Config] says.
//
// A driver can be asked in two ways:
//
//   - [Start] plays the part of external-provisioner, too: it creates volumes for claims that have a
//     selected node, and publishes CSIStorageCapacity objects. Nothing else runs, and a test can decide
//     when something is published, and what goes wrong.
//   - [Driver.Serve] answers the calls of a real external-provisioner, one for all nodes or one for
//     each node.
//
// With Config.Rebuilding, a driver that was started rebuilds volumes on other nodes.
package modeldriver
