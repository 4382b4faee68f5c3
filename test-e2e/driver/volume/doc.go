// Package volume is the life of a volume on one node: created, staged, rebuilt from a
// copy on another node, deleted.
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
//  2. Write down on the PersistentVolume that a copy was begun.
//  3. Fence the other copies: from then on, no other node stages them. One that is
//     staged cannot be fenced, unless its node is out of service.
//  4. Copy the data, and look whether it was written meanwhile. This goes on when the call
//     ends.
//  5. Name this node in the PersistentVolume.
//  6. Count the generation up, and say that the volume is staged here.
//  7. Mount it.
//  8. Say that it was served. The node with the old copy finds that, and removes it by itself.
//
// An old copy that the node has goes before step 4: there may be no room for both. A copy is made under
// another name until it is complete. Steps 1 to 4 are left out if the data is here, and if the
// PersistentVolume says so, no other node is asked. Unstaging ends step 4. What is left by calls
// that never came again is found by Sweep.
//
// Two nodes that do this at once may both fail and try again, but never both get to 6:
// whoever is second finds itself fenced. A volume that is being deleted is fenced, too.
package volume
