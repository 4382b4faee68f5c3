// Package rebuild is the half of the driver that there is once in a cluster. It watches
// nodes, claims and PersistentVolumes, and is the only one that writes the node affinity
// of volumes, so that node plugins need no rights in the API server. It keeps what
// docs/volume-rebuilding-contract.md says about PersistentVolumes:
//
//	the last usable node with a copy goes    unsets the affinity, lists the home nodes
//	one of them can be used again            sets the affinity to them
//	a node asks for the volume               says whether it may have it
//	a copy is complete                       sets the affinity to its node
//	a node that was recreated has a copy     lists it
//
// An affinity is set only if it fits where the claim was sent, before and after. What has
// to survive is in annotations of the PersistentVolume, so the controller can be killed
// at any time; it starts from what is there, not from what has happened.
package rebuild
