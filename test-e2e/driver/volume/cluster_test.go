// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/apitest"
	"capacityv2.internal/test-e2e/driver/rebuild"
	"capacityv2.internal/test-e2e/driver/store"
)

const (
	mi     = 1 << 20
	driver = "reference.example.com"
	key    = "topology.example.com/node"
	size   = 4 * mi
)

// volumeName is another one each time: loop devices are those of the whole machine, where the tests may run twice.
var volumeName = fmt.Sprint("pv-", os.Getpid())

var named = rebuild.Names{Driver: driver, TopologyKey: key}

// cluster is the nodes n, m and o on this machine, with real loop devices and mounts, and a fake API server. Each node has
// a pool of 8Mi. The controller does its work when a test waits for it.
type cluster struct {
	*testing.T
	root   string
	server *apitest.Server
	nodes  map[string]*Node
	// death ends a node, as kill -9 does.
	death map[string]*death
	// call is the context of calls.
	call context.Context
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount and use loop devices")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("this machine has no loop devices: %v", err)
	}
	c := &cluster{T: t, call: t.Context(), root: t.TempDir(), server: apitest.New(), nodes: map[string]*Node{}, death: map[string]*death{}}
	for _, name := range []string{"n", "m", "o"} {
		_, err := c.server.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid1"}}, metav1.CreateOptions{})
		c.must(err)
		c.own(name)
		c.start(name)
	}
	t.Cleanup(func() {
		for name, n := range c.nodes {
			n.endCopies()
			c.unmount(name)
		}
		for file := range c.loops() {
			t.Errorf("%s is still attached", file)
		}
	})
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// own makes the folder of a node.
func (c *cluster) own(name string) {
	c.Helper()
	c.must(os.MkdirAll(filepath.Join(c.root, name), 0o700))
	c.must(os.WriteFile(filepath.Join(c.root, name, "owner"), []byte(name+"\n"), 0o600))
}

// start starts the driver of a node, or starts it again after it was killed.
func (c *cluster) start(name string) *Node {
	c.Helper()
	if old := c.nodes[name]; old != nil {
		old.endCopies()
	}
	c.death[name] = &death{kill: func() {}}
	n := &Node{
		Name: name, Peers: c.root, KeepOld: time.Hour, Slots: semaphore.NewWeighted(2),
		Store:   store.New(filepath.Join(c.root, name), name, map[string]resource.Quantity{"p": resource.MustParse("8Mi")}),
		API:     rebuild.API{Names: named, Client: c.server},
		Mounter: mount.New(""), Exec: exec.New(),
	}
	n.Store.Fault = c.death[name].step
	c.nodes[name] = n
	n.Rooms(c.Context(), "") // marks its disk, if that is new
	return n
}

// endCopies has no copy go on, as a process that was killed has none.
func (n *Node) endCopies() {
	n.copies.Range(func(_, job any) bool {
		job.(copying).cancel()
		<-job.(copying).ended
		return true
	})
}

// path is where a node stages volumes.
func (c *cluster) path(node string) string { return filepath.Join(c.root, "stage-"+node) }

func (c *cluster) unmount(node string) {
	c.Helper()
	path := target(c.path(node))
	if mounted, err := mount.New("").IsMountPoint(path); err == nil && mounted {
		c.Errorf("%s is still mounted", path)
		c.must(mount.New("").Unmount(path))
	}
}

// loops are the files of this test that are attached.
func (c *cluster) loops() map[string]bool {
	files := map[string]bool{}
	all, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, f := range all {
		if path, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(path), c.root+"/") {
			files[string(path)] = true
		}
	}
	return files
}

// create makes a volume on a node, its PersistentVolume and its claim, and writes a file.
func (c *cluster) create(node string) string {
	c.Helper()
	made, err := c.nodes[node].Create(c.Context(), volumeName, store.Copy{Bytes: size}, 0)
	c.must(err)
	c.bind(made.Handle, node)
	c.write(node, made.Handle, "first")
	return made.Handle
}

// bind does what external-provisioner and the scheduler do.
func (c *cluster) bind(handle, node string) {
	c.Helper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName, ResourceVersion: "1"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)},
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "uid"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
	_, err := c.server.CoreV1().PersistentVolumes().Create(c.Context(), pv, metav1.CreateOptions{})
	c.must(err)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "uid"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volumeName}}
	_, err = c.server.CoreV1().PersistentVolumeClaims("default").Create(c.Context(), claim, metav1.CreateOptions{})
	c.must(err)
	c.send(node)
}

// send sends the claim to a node, where a pod waits for it.
func (c *cluster) send(node string) {
	c.Helper()
	claims := c.server.CoreV1().PersistentVolumeClaims("default")
	claim, err := claims.Get(c.Context(), "claim", metav1.GetOptions{})
	c.must(err)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, node)
	_, err = claims.Update(c.Context(), claim, metav1.UpdateOptions{})
	c.must(err)
}

// cordon changes whether a node can be used: an empty effect, or one of "cordoned", "off" and "gone".
func (c *cluster) cordon(name, how string) {
	c.Helper()
	nodes := c.server.CoreV1().Nodes()
	if how == "gone" {
		c.must(nodes.Delete(c.Context(), name, metav1.DeleteOptions{}))
		return
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid1"}, Spec: corev1.NodeSpec{Unschedulable: how == "cordoned"}}
	if how == "off" {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}
	}
	if how == "new" {
		node.UID = "uid2"
		_, err := nodes.Create(c.Context(), node, metav1.CreateOptions{})
		c.must(err)
		return
	}
	_, err := nodes.Update(c.Context(), node, metav1.UpdateOptions{})
	c.must(err)
}

// place does the work of the controller, which sees a pod where the claim was sent.
func (c *cluster) place() {
	c.Helper()
	for c.change() {
	}
}

// change does one step of that, and returns whether there was one.
func (c *cluster) change() bool {
	c.Helper()
	api := rebuild.API{Names: named, Client: c.server}
	v, err := api.Volume(c.Context(), volumeName, volumeName+"@n")
	c.must(err)
	state, err := api.Cluster(c.Context(), v)
	c.must(err)
	state.Pods = map[string]bool{state.Selected: false}
	change := named.Next(v, state)
	_, err = api.Patch(c.Context(), v, change)
	c.must(err)
	return change != nil
}

// stage repeats the call until it ends otherwise than with Aborted, as a kubelet does.
func (c *cluster) stage(node, handle string) (err error) {
	c.Helper()
	for range 400 {
		if err = c.nodes[node].Stage(c.call, handle, c.path(node)); status.Code(err) != codes.Aborted || c.death[node].isDead() {
			return err
		}
		c.place()
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

func (c *cluster) unstage(node, handle string) {
	c.Helper()
	c.must(c.nodes[node].Unstage(c.call, handle, c.path(node)))
}

// staged is a cluster with a volume on n, where a pod uses it.
func staged(t *testing.T) (c *cluster, handle string) {
	t.Helper()
	c = newCluster(t)
	handle = c.create("n")
	c.must(c.stage("n", handle))
	return c, handle
}

// drained is a cluster with a volume on n, which was drained. The claim was sent to m.
func drained(t *testing.T) (c *cluster, handle string) {
	t.Helper()
	c = newCluster(t)
	handle = c.create("n")
	c.drain("n", "m")
	return c, handle
}

// copied is the same, and m has a complete copy.
func copied(t *testing.T) (c *cluster, handle string) {
	t.Helper()
	c, handle = drained(t)
	for range 400 {
		_ = c.nodes["m"].Stage(c.call, handle, c.path("m"))
		if c.pv().Copied.Node == "m" {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	c.expectCopies("m", handle, "copy copied")
	return c, handle
}

// moved is a cluster with a volume on n, which was drained, and a pod has read the volume on m.
func moved(t *testing.T) (c *cluster, handle string) {
	t.Helper()
	c, handle = drained(t)
	c.read("m", handle, "first")
	return c, handle
}

// drain cordons a node, and sends the claim to another one.
func (c *cluster) drain(from, to string) {
	c.Helper()
	c.cordon(from, "cordoned")
	c.place()
	c.send(to)
}

// write stages a volume, writes a file, and unstages it.
func (c *cluster) write(node, handle, content string) {
	c.Helper()
	c.must(c.stage(node, handle))
	c.sweep(handle)
	c.later(mountTime) // a pod uses it so long
	c.must(os.WriteFile(filepath.Join(target(c.path(node)), "file"), []byte(content), 0o600))
	c.unstage(node, handle)
}

// read stages a volume, and expects a file.
func (c *cluster) read(node, handle, want string) {
	c.Helper()
	c.must(c.stage(node, handle))
	c.sweep(handle)
	c.later(mountTime) // a pod uses it so long
	content, err := os.ReadFile(filepath.Join(target(c.path(node)), "file"))
	if err != nil || string(content) != want {
		c.Errorf("%s reads %q, %v; expected %q", node, content, err, want)
	}
	c.unstage(node, handle)
}

// sweep looks at the volume on all nodes, as they do when it has changed.
func (c *cluster) sweep(handle string) {
	c.Helper()
	for _, n := range c.nodes {
		if err := n.Sweep(c.Context(), handle); err != nil && status.Code(err) != codes.Unavailable {
			c.Log(err)
		}
	}
}

// copies returns what a node has of the volume, as in "first ready, copy old": one that is removed later.
func (c *cluster) copies(node, handle string) string {
	var texts []string
	copies, err := c.nodes[node].Store.Copies(handle)
	if err != nil {
		return err.Error()
	}
	for _, copy := range copies {
		id := copy.ID
		if id != rebuild.FirstCopy {
			id = "copy"
		}
		if !copy.RemoveAt.IsZero() {
			copy.State = "old"
		}
		texts = append(texts, fmt.Sprintf("%s %s", id, copy.State))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// all returns all copies of a node.
func (n *Node) all() []store.Copy {
	copies, _ := n.Store.Copies("")
	return copies
}

func (c *cluster) expectCopies(node, handle, want string) {
	c.Helper()
	if got := c.copies(node, handle); got != want {
		c.Errorf("%s has %q; expected %q", node, got, want)
	}
}

// pv returns where the volume is by the API server.
func (c *cluster) pv() rebuild.Volume {
	c.Helper()
	pv, err := c.server.CoreV1().PersistentVolumes().Get(c.Context(), volumeName, metav1.GetOptions{})
	c.must(err)
	return named.VolumeOf(pv)
}

func (c *cluster) expectLeft(node string, want int64) {
	c.Helper()
	if got := c.left(node); got != want {
		c.Errorf("%s has %d Mi left; expected %d", node, got, want)
	}
}

func (c *cluster) left(node string) int64 {
	rooms := c.nodes[node].Rooms(c.Context(), "")
	if len(rooms) == 0 {
		return -1
	}
	return rooms[0] / mi
}

func (c *cluster) expect(err error, code codes.Code, text string) {
	c.Helper()
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		c.Errorf("got error %v; expected %s with %q", err, code, text)
	}
}
