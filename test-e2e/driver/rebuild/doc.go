// Package rebuild is the half of the driver that there is once in a cluster. It watches
// nodes, claims and PersistentVolumes, and is the only one that writes the node affinity
// of volumes, so that node plugins need no rights in the API server.
//
// The node affinity says where a volume can be used now:
//
//	a node with a copy            the node affinity
//	is cordoned, gone, or out     names the other copies, or is unset if there is none
//	can be used again             names it again, unless the claim was sent elsewhere
//	asks for the volume           names it (ControllerPublishVolume)
//
// What has to be remembered is in two annotations of the PersistentVolume, which are
// written together with the node affinity. So the controller can be killed at any time;
// it starts from what is there, not from what has happened.
package rebuild
