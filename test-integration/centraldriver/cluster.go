package centraldriver

import (
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
)

// CreateNode creates a node as a kubelet with the driver does. More labels may be nil.
func (d *Driver) CreateNode(c *clustertest.Cluster, name string, labels map[string]string) {
	c.Helper()
	all := map[string]string{d.TopologyKey: name}
	for key, value := range labels {
		all[key] = value
	}
	c.CreateNode(name, all)
	_, err := c.Client().StorageV1().CSINodes().Create(c, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: d.Name, NodeID: name, TopologyKeys: []string{d.TopologyKey}}}},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSINode")
}

// CreateDriver creates the CSIDriver, and the namespace of the capacity objects. rebuilding is
// volumeRebuilding, and may be nil.
func (d *Driver) CreateDriver(c *clustertest.Cluster, rebuilding *bool) {
	c.Helper()
	_, err := c.Client().StorageV1().CSIDrivers().Create(c, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name},
		Spec:       storagev1.CSIDriverSpec{StorageCapacity: new(true), AttachRequired: new(false), VolumeRebuilding: rebuilding},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create CSIDriver")
	_, err = c.Client().CoreV1().Namespaces().Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.Namespace()}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		c.ExpectNoError(err, "create the namespace of the objects")
	}
}

// CreateClass creates a storage class.
func (d *Driver) CreateClass(c *clustertest.Cluster, name string) {
	c.Helper()
	_, err := c.Client().StorageV1().StorageClasses().Create(c, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: d.Name, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "create the class")
}

// Namespace is that of the capacity objects.
func (d *Driver) Namespace() string { return "provisioner" }

// StartProvisioner starts the driver, and external-provisioner beside it. Both end with the test. The
// flags win over its own.
func (d *Driver) StartProvisioner(c *clustertest.Cluster, program string, flags ...string) *apiservertest.Process {
	c.Helper()
	dir, err := os.MkdirTemp("", "central") // the path of c.TempDir is too long for a socket
	c.ExpectNoError(err, "folder for the socket")
	c.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "csi.sock")
	listener, err := net.Listen("unix", socket)
	c.ExpectNoError(err, "listen")
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	go func() { _ = server.Serve(listener) }()
	c.Cleanup(server.Stop)
	return apiservertest.StartProcess(c.TContext.TContext, program, []string{"NAMESPACE=" + d.Namespace()}, append([]string{
		"--csi-address=" + socket, "--kubeconfig=" + apiservertest.Kubeconfig(c.TContext.TContext, c.RESTConfig(), ""), "--enable-capacity", "--capacity-ownerref-level=-1",
		"--kube-api-qps=100", "--kube-api-burst=200", "--worker-threads=20", "--strict-topology",
	}, flags...)...)
}
