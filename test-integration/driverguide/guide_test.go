// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const class = "my-driver"

// serverFlags are for what the manifest of the guide has: roles, and a container that mounts.
var serverFlags = []string{"--authorization-mode=RBAC", "--allow-privileged"}

// TestGuide follows volumes from a claim to the driver and back: with the program, the
// flags and the permissions of the guide.
func TestGuide(t *testing.T) {
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{ServerFlags: serverFlags})
	g := apply(c)
	socket, driver := g.startDriver()
	g.startProvisioner(socket)

	g.expectPools("100Gi", "60Gi")
	g.callAtOnce(socket)
	pod := clustertest.Pod{Name: "two", Class: class, Sizes: []string{"90Gi", "50Gi"}}
	c.CreatePod(pod)
	c.ExpectNode("two", node)
	g.expectPools("10Gi", "10Gi")
	c.CreatePod(clustertest.Pod{Name: "waits", Class: class, Sizes: []string{"15Gi"}})
	c.ExpectNoRoom("waits", 1)

	c.DeletePod(pod)
	c.ExpectNode("waits", node)
	g.expectPools("100Gi", "45Gi")
	if err, ended := driver.Ended(); ended {
		t.Errorf("the driver ended: %v", err)
	}
}

// startDriver starts the driver of the manifest, see startDriver.
func (g *guide) startDriver() (socket string, driver *clustertest.Process) {
	g.Helper()
	return startDriver(g.TContext.TContext, g.env(g.container("driver"))...)
}

// startDriver starts the driver on a socket, and returns both. It ends at its first data
// race.
func startDriver(tCtx ktesting.TContext, env ...string) (socket string, driver *clustertest.Process) {
	tCtx.Helper()
	// Not tCtx.TempDir, whose path is too long for a socket.
	dir, err := os.MkdirTemp("", "guide")
	tCtx.ExpectNoError(err, "folder for sockets")
	tCtx.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "csi.sock")
	program := clustertest.Program(tCtx, "DRIVER_GUIDE", "my-driver")
	return socket, clustertest.StartProcess(tCtx, program, append(env, "GORACE=halt_on_error=1"), socket, filepath.Join(dir, "registration.sock"))
}

// startProvisioner starts external-provisioner with the flags of the manifest, and more.
func (g *guide) startProvisioner(socket string, more ...string) {
	g.Helper()
	container := g.container("provisioner")
	i := slices.IndexFunc(container.Args, func(a string) bool { return strings.HasPrefix(a, "--csi-address=") })
	if i < 0 {
		g.Fatalf("external-provisioner has no --csi-address: %q", container.Args)
	}
	args := append(append(slices.Clone(container.Args), "--kubeconfig="+g.kubeconfig()), more...)
	args[i] = "--csi-address=" + socket
	clustertest.StartProcess(g.TContext.TContext, clustertest.Program(g.TContext.TContext, "COMPONENTS", "csi-provisioner"), g.env(container), args...)
}

// fileSystem is how the driver's volumes are used.
var fileSystem = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// callAtOnce calls the driver over several connections at the same time, about volumes without
// a size, which change no number. What the calls share is a data race then, and the driver ends.
func (g *guide) callAtOnce(socket string) {
	g.Helper()
	errs := make([]error, 3)
	var calls sync.WaitGroup
	for i := range errs {
		connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		g.ExpectNoError(err, "connect to the driver")
		defer connection.Close()
		client, volume := csi.NewControllerClient(connection), fmt.Sprintf("empty-%d", i)
		calls.Go(func() {
			for range 200 {
				_, err1 := client.CreateVolume(g, &csi.CreateVolumeRequest{Name: volume, VolumeCapabilities: []*csi.VolumeCapability{fileSystem}})
				_, err2 := client.GetCapacity(g, &csi.GetCapacityRequest{})
				_, err3 := client.DeleteVolume(g, &csi.DeleteVolumeRequest{VolumeId: volume})
				if errs[i] = errors.Join(err1, err2, err3); errs[i] != nil {
					return
				}
			}
		})
	}
	calls.Wait()
	g.ExpectNoError(errors.Join(errs...), "call the driver")
}

// expectPools waits until the object of the node has these pools, the largest one first.
func (g *guide) expectPools(pools ...string) {
	g.Helper()
	g.Eventually(func(ctx context.Context) error {
		list, err := g.Client().StorageV1().CSIStorageCapacities(g.daemonSet.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d CSIStorageCapacity objects, want 1", len(list.Items))
		}
		object := list.Items[0]
		if !metav1.IsControlledBy(&object, &g.daemonSet) {
			return fmt.Errorf("the object has the owners %v, want the DaemonSet", object.OwnerReferences)
		}
		return compare(object, pools)
	})
}

// compare checks the numbers of an object.
func compare(object storagev1.CSIStorageCapacity, pools []string) error {
	var got []string
	var sum int64
	for _, pool := range object.AvailableCapacities {
		got = append(got, pool.String())
		sum += pool.Value()
	}
	if !slices.Equal(got, pools) || object.Capacity.Value() != sum || object.MaximumVolumeSize.String() != pools[0] {
		return fmt.Errorf("pools %v, capacity %s, maximum %s; want %v, their sum and the largest", got, object.Capacity, object.MaximumVolumeSize, pools)
	}
	return nil
}
