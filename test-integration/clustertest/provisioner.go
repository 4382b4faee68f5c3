// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/modeldriver"
)

// Install returns a driver that a real external-provisioner is to ask. Its CSIDriver and classes
// are created, not its nodes.
func (c *Cluster) Install(config modeldriver.Config) *modeldriver.Driver {
	c.Helper()
	driver, err := modeldriver.New(config)
	c.ExpectNoError(err, "driver")
	c.ExpectNoError(driver.Install(c, c.Client()), "install the driver")
	return driver
}

// CreateNodeOf creates a node in a segment of a driver, as a kubelet does with it. More labels may
// be nil.
func (c *Cluster) CreateNodeOf(driver, name string, segment modeldriver.Segment, labels map[string]string) {
	c.Helper()
	all := maps.Clone(segment.Labels)
	maps.Copy(all, labels)
	c.CreateNode(name, all)
	c.CreateCSINode(driver, name, slices.Sorted(maps.Keys(segment.Labels))...)
}

// CreateCSINode says that a driver is on a node, and which labels of the node are those of its segment.
func (c *Cluster) CreateCSINode(driver, node string, labels ...string) {
	c.Helper()
	_, err := c.Client().StorageV1().CSINodes().Create(c, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: node, TopologyKeys: labels}}},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSINode")
}

// ProvisionerPod is what a provisioner takes for its pod. Nobody creates it, and objects have no owner, unless a test says so.
const ProvisionerPod = "provisioner"

// StartProvisioner serves a driver, for all nodes or, if it is not empty, for the node of a segment,
// and starts external-provisioner beside it. Both end with the test. The flags win over its own.
func (c *Cluster) StartProvisioner(driver *modeldriver.Driver, node, program string, flags ...string) *Process {
	c.Helper()
	dir, err := os.MkdirTemp("", "csi") // the path of c.TempDir is too long for a socket
	c.ExpectNoError(err, "folder for the socket")
	c.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "csi.sock")
	listener, err := net.Listen("unix", socket)
	c.ExpectNoError(err, "listen")
	c.Cleanup(driver.Serve(listener, node).Stop)
	own := []string{
		"--csi-address=" + socket, "--kubeconfig=" + Kubeconfig(c.TContext.TContext, c.RESTConfig(), ""), "--enable-capacity", "--capacity-ownerref-level=-1",
		"--kube-api-qps=100", "--kube-api-burst=200", "--worker-threads=20", "--strict-topology", "--extra-create-metadata",
	}
	if node != "" {
		own = append(own, "--node-deployment")
	}
	return StartProcess(c.TContext.TContext, program, []string{"NAMESPACE=" + modeldriver.Namespace, "POD_NAME=" + ProvisionerPod, "NODE_NAME=" + node}, append(own, flags...)...)
}
