// Package centraldriver is a CSI driver with one controller for all nodes, behind the socket of
// a real external-provisioner. There are no kubelets: who uses it creates the nodes and what
// kubelets would say about the driver.
package centraldriver
