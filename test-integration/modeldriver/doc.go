// Package modeldriver models a CSI driver with pools, and plays the part that
// external-provisioner plays for a real one: it publishes CSIStorageCapacity
// objects, creates volumes for claims that have a selected node, and sends a pod
// back to the scheduler when there is no room.
//
// The model knows the truth about its free space. What it publishes may be late,
// constant, or one number instead of pools, as with real drivers. A decision of
// the scheduler that the truth does not allow is a failed provision; tests count
// them.
package modeldriver
