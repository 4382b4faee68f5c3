package volume

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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
)

const gi = 1 << 30

// cluster is a folder with the books and pools of some nodes, and what an API server knows.
type cluster struct {
	*testing.T
	root string
	// path is where volumes are staged, on each node.
	path string
	// paths are where they are staged with real mounts, by nodes.
	paths map[string]string
	sizes map[string]int64
	// backing and mounters, by nodes, survive the driver.
	backing  Backing
	mounters map[string]mount.Interface

	mutex sync.Mutex
	// named is the node in the node affinity, by volumes. None: it is unset. sent is where
	// the claim was sent, if that matters, and begun for which node a copy was begun.
	named, sent, begun map[string]string
	shown              []string // nodes
	off                []string // nodes
	away               bool
}

func newCluster(t *testing.T, sizes map[string]int64) *cluster {
	root := t.TempDir()
	c := &cluster{T: t, root: root, path: filepath.Join(root, "stage"), sizes: sizes, backing: Folders{}, mounters: map[string]mount.Interface{},
		named: map[string]string{}, sent: map[string]string{}, begun: map[string]string{}}
	for node := range sizes {
		c.mounters[node] = mount.NewFakeMounter(nil)
	}
	return c
}

// start starts the driver of a node, or starts it again.
func (c *cluster) start(node string) *Manager {
	c.Helper()
	store, err := pool.Create(c.root, node, []pool.Pool{{Name: "p", Size: *resource.NewQuantity(c.sizes[node]*gi, resource.BinarySI)}})
	if err != nil {
		c.Fatal(err)
	}
	m, err := New(c.Context(), &Manager{Store: store, Backing: c.backing, Mounter: c.mounters[node], Placement: c})
	if err != nil {
		c.Fatal(err)
	}
	return m
}

// pool returns the folder of a pool.
func (c *cluster) pool(node string) string { return filepath.Join(c.root, "pools", node, "p/volumes") }

func (c *cluster) IsOff(_ context.Context, node string) bool { return slices.Contains(c.off, node) }

func (c *cluster) Self(context.Context, string) (string, error) { return "uid", nil }

func (c *cluster) Ask(_ context.Context, question Question, v pool.Volume, node string, _ ...string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	volume := v.ID
	named, sent := c.named[volume], c.sent[volume]
	switch {
	case c.away:
		return status.Error(codes.Unavailable, "away")
	case question == Drop && named == node:
		return status.Error(codes.FailedPrecondition, "volume is here")
	case question == Drop:
		delete(c.begun, volume)
	case question == Make && named == "":
	case question == Make, question == Named && named != node:
		return status.Errorf(codes.Aborted, "volume is on %q", named)
	case question == Show:
		c.shown = append(c.shown, node)
	case named != "" && named != node, named == "" && sent != "" && sent != node:
		return status.Errorf(codes.Aborted, "volume is on %s%s", named, sent)
	case question == Begin:
		c.begun[volume] = node
	case question == Place:
		c.named[volume] = node
	}
	return nil
}

// release unsets the node affinity.
func (c *cluster) release(volume string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.named, volume)
}

// broken mounts nothing.
type broken struct{ mount.Interface }

func (broken) Mount(string, string, string, []string) error { return errors.New("broken") }

// volume creates one with data, as if it had been used on a node.
func (c *cluster) volume(m *Manager) pool.Volume {
	c.Helper()
	v, err := m.Create(c.Context(), pool.Volume{Name: "v", CapacityBytes: gi}, 0)
	if err != nil {
		c.Fatal(err)
	}
	c.write(m, v.ID, "first")
	return v
}

// write stages a volume, writes a file, and unstages it.
func (c *cluster) write(m *Manager, id, content string) {
	c.Helper()
	if err := m.Acquire(c.Context(), id, c.path); err != nil {
		c.Fatal(err)
	}
	v, err := m.Get(id)
	if err != nil {
		c.Fatal(err)
	}
	dir := v.Path
	if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o755); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "folder", "file"), []byte(content), 0o640); err != nil {
		c.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "link"))
	if err := os.Symlink("folder/file", filepath.Join(dir, "link")); err != nil {
		c.Fatal(err)
	}
	if err := m.Release(c.Context(), id, c.path); err != nil {
		c.Fatal(err)
	}
}

// data returns what a node has of a volume: state, and content of the file.
func (c *cluster) data(m *Manager, id string) string {
	c.Helper()
	v, err := m.Store.Get(id)
	if err != nil {
		return "none"
	}
	content, err := os.ReadFile(filepath.Join(v.Path, "link"))
	if err != nil {
		return string(v.State)
	}
	return fmt.Sprintf("%s %s", v.State, content)
}

func (c *cluster) left(m *Manager) int64 {
	c.Helper()
	rooms, err := m.Store.Rooms(nil)
	if err != nil {
		c.Fatal(err)
	}
	return rooms[0].AvailableBytes / gi
}

func (c *cluster) expect(err error, code codes.Code, text string) {
	c.Helper()
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		c.Errorf("got error %v; expected %s with %q", err, code, text)
	}
}
