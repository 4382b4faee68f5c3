// Package volume is the life of a volume on one node: created, staged, rebuilt from a
// copy on another node, expanded, deleted.
//
// The books of all nodes (package pool) are in one folder that all nodes can reach, and
// the data of the pools, too. A driver for real machines has the network in the place
// of that folder, and has to answer the same questions: which copy has the data, can it
// still be written, is there room, is the new copy complete.
//
// A node that is asked to stage a volume takes these steps. It can be killed after any
// of them; the call comes again, and finds what the steps before have left.
//
//  1. Take the room (if the node has no copy).
//  2. Fence the other copies: from then on, no other node stages them. One that is
//     staged cannot be fenced, unless its node is off.
//  3. Copy the data and compare the checksums (if the copy of this node is behind).
//  4. Have the controller half name this node in the PersistentVolume.
//  5. Count the generation up, and say that the volume is staged here.
//  6. Give up the copies that the volume does not keep.
//
// Two nodes that do this at once may both fail and try again, but never both get to 5:
// whoever is second finds itself fenced.
package volume
