// SPDX-License-Identifier: Apache-2.0

// Package volume is the life of a volume on one node: created, staged, copied from another node, given up, deleted. It does
// what package rebuild decides, with the disks of package store.
//
// What a node does when it is asked to stage a volume, and is where the claim was sent:
//
//  1. Take the room, and write a record.
//  2. Set begun on the PersistentVolume.
//  3. Copy the data from the folder of the node that is listed. This goes on when the call ends.
//  4. Write the record, then set copied. The controller sets the affinity.
//  5. Set in-use.
//  6. Mount.
//
// It can be killed after any of them. The call comes again, or [Node.Sweep] finds what is left.
package volume
