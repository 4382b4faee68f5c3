// SPDX-License-Identifier: Apache-2.0

// Package rebuild keeps the contract of CSIDriver.spec.volumeRebuilding
// (docs/reference/rebuilding-contract.md): what a driver whose volumes are on nodes, with one copy of each, reads and
// writes in the API server. It knows nothing of the storage, and can be copied as it is.
//
// Nodes share nothing but the PersistentVolume. All that they have to know of each other is in its annotations, with
// the name of the driver before them ([Names]):
//
//	in-use=NODE/COPY      NODE has staged the volume, or is about to
//	begun=NODE/COPY       NODE makes a copy, or is about to
//	copied=NODE/COPY      that copy is complete
//	shown=NODE/UID/COPY   NODE has come back, and has this copy
//	copy=COPY             the copy that counts; without it, the one that CreateVolume has made
//	unconfirmed=LIST      an affinity was set, and the claim was not read again; LIST is the one from before
//	released-from=NODES   the nodes in the last affinity
//
// The first four are written by the node that they name, and the others by the controller. Each PATCH has the
// resourceVersion that was read. So of two that exclude each other, such as in-use of one node and begun of another,
// one fails. A COPY is a name that is used once: a copy that was given up is never taken for a new one.
//
// A driver has four things to do:
//
//   - run a [Controller], once in the cluster. It releases volumes, sets affinities, and removes flags of nodes that are
//     off, or are not asked any more.
//   - ask [Serve] when a node is asked to stage a volume, with what [API.Volume] and [API.Cluster] have read, and whether
//     the node has the copy that counts.
//   - before it stages, set in-use ([Use]), and remove it ([Unuse]) when nothing can write any more: no mount, and no
//     device.
//   - before the first byte of a copy, set begun ([Begin]). When the copy is complete and durable, set copied
//     ([Complete]). To give it up, remove both ([Cancel]), and only then the copy: otherwise an affinity could be set to
//     one that is gone. [IsWanted] tells whether a copy is still wanted.
//
// A node that has the copy that counts and is not listed says so with [Show]: after a start, and when a volume is released.
//
// What the package cannot know, the driver sees to:
//
//   - Before a copy is begun, open the copy that counts on one of [Volume.Owners]. If none shows it, answer Unavailable,
//     and change nothing.
//   - Keep the old copy until in-use has named the new one for longer than a mount may take, and you can see the new one.
//   - After a start, look for volumes that are in use here and not staged: after a reboot, the kubelet may never call
//     NodeUnstageVolume.
//   - A copy comes to count only while a pod on its node waits for it.
//   - Start the nodes first, then set CSIDriver.spec.volumeRebuilding, and then run the controller, which does not look at it.
//
// The decisions are functions of what was read: a [Volume] and a [Cluster]. The tests have them as the tables of the
// contract. The functions that return a [Change] return nil if there is nothing to change; [API.Patch] writes it. Calls of
// the API server end with their contexts. A node can watch its volumes with the [Loop] that the controller runs in.
//
// Who writes what is a matter of trust: a ValidatingAdmissionPolicy has to hold each node to its own values, or one that
// was taken over has all volumes.
package rebuild
