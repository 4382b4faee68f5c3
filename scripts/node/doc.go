// Package node is a machine of a local cluster: namespaces with folders, an address and a
// container runtime of its own, and the images that it begins with.
package node

// GoOn is the word that a process waits for before it does what has to be recorded,
// or prepared, first.
const GoOn = "go\n"
