// SPDX-License-Identifier: Apache-2.0

// Package volume is the life of a volume on one node: created, staged, copied from another node, given up, deleted. It does
// what package rebuild decides, with the disks of package store.
//
// What a node does when it is asked to stage a volume, and is where the claim was sent:
//
//  1. Open the data, in the folder of the node that is listed.
//  2. Write a record, and take the room.
//  3. Set begun on the PersistentVolume.
//  4. Copy. This goes on when the call ends.
//  5. Write the record, then set copied. The controller sets the affinity.
//  6. Set in-use.
//  7. Mount.
//
// It can be killed after any of them, or fail. The call comes again and goes on, or [Node.Sweep] removes what is left.
package volume
