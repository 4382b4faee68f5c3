// Package rebuild is what the driver reads from the API server, and what it writes there:
// the node affinities and annotations of its PersistentVolumes. It keeps what
// docs/reference/rebuilding-contract.md says about PersistentVolumes.
//
// The controller, which there is once in a cluster, watches nodes and claims. Its caches say where to look; before it
// changes anything, it asks the API server:
//
//	the last usable node with a copy goes    unsets the affinity, lists the home nodes
//	one of them can be used again            sets the affinity to them
//
// Each node asks for itself:
//
//	it is asked for a volume                 learns whether it may have it
//	its copy is complete                     sets the affinity to itself
//	it was recreated and has a copy          lists itself
//
// Nobody else is asked: each decision is one PATCH of what was read, which fails if the
// PersistentVolume has changed. An affinity is set only if it fits where the claim was sent,
// before and after, or where its pod runs all the time. What has to survive is in annotations of the PersistentVolume, so each
// process can be killed at any time; it starts from what is there, not from what has
// happened.
package rebuild
