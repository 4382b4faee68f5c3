// Package nodeplugin is the part of a model CSI driver that a kubelet talks to, so
// that pods with CSI volumes run. Volumes are empty folders, made when a pod comes
// to the node and removed when it goes: this package serves from outside of the
// node, where it cannot mount anything.
package nodeplugin
