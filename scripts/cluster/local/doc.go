// SPDX-License-Identifier: Apache-2.0

// Package local runs a local Kubernetes cluster from the components that were
// built: what `make up` and `make down` do once the build is there. Upstream's
// own hack/local-up-cluster.sh, unmodified, starts the components; this package
// gives it a place of its own and takes that place away again.
//
// Where the kubelet can run (root on Linux, writable cgroups), each node of the
// cluster is inside namespaces of its own (mount, network, process, host name), so
// that the machine's files, addresses and settings stay as they are, and the end
// of a node's first process is the end of everything in it. The first node runs the
// script, with the control plane; the others join it over a bridge that the first
// one holds, with a kubelet and a kube-proxy of its configuration. Elsewhere only the
// control plane runs, on loopback.
package local
