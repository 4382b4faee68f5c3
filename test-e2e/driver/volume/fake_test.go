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

	"capacityv2.internal/test-e2e/driver/pool"
)

const gi = 1 << 30

// cluster is a folder with the books of some nodes, and a controller half.
type cluster struct {
	*testing.T
	root  string
	sizes map[string]int64

	mutex sync.Mutex
	// named is the node in the node affinity, by volumes. None: it is unset. sent is where
	// the claim was sent, if that matters, and begun for which node a copy was begun.
	named, sent, begun map[string]string
	shown              []string // nodes
	off                []string // nodes
	away               bool
}

func newCluster(t *testing.T, sizes map[string]int64) *cluster {
	return &cluster{T: t, root: t.TempDir(), sizes: sizes, named: map[string]string{}, sent: map[string]string{}, begun: map[string]string{}}
}

// start starts the driver of a node, or starts it again.
func (c *cluster) start(node string) *Manager {
	c.Helper()
	store, err := pool.Create(c.root, node, []pool.Pool{{
		Name: "p", Path: filepath.Join(c.root, node, "data"), Size: *resource.NewQuantity(c.sizes[node]*gi, resource.BinarySI),
	}})
	if err != nil {
		c.Fatal(err)
	}
	m, err := New(c.Context(), &Manager{Store: store, Backing: unmounted{}, Placement: c})
	if err != nil {
		c.Fatal(err)
	}
	return m
}

func (c *cluster) Fence(_ context.Context, _, node string) error {
	if slices.Contains(c.off, node) {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition, "node %s may run", node)
}

func (c *cluster) Ask(_ context.Context, question Question, volume, node string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	named, sent := c.named[volume], c.sent[volume]
	switch {
	case c.away:
		return status.Error(codes.Unavailable, "away")
	case question == Drop && named == node:
		return status.Error(codes.FailedPrecondition, "volume is here")
	case question == Drop:
		delete(c.begun, volume)
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

// unmounted are folders that get mounted nowhere.
type unmounted struct{ Folders }

func (unmounted) Mount(string, string, []string) error { return nil }
func (unmounted) IsMounted(string) (bool, error)       { return true, nil }

// broken are folders that cannot be mounted.
type broken struct{ Folders }

func (broken) Mount(string, string, []string) error { return errors.New("broken") }
func (broken) IsMounted(string) (bool, error)       { return false, nil }

// volume creates one with data, as if it had been used on a node.
func (c *cluster) volume(m *Manager, copies int) pool.Volume {
	c.Helper()
	v, err := m.Create(c.Context(), Request{Name: "v", Bytes: gi, Copies: copies})
	if err != nil {
		c.Fatal(err)
	}
	c.write(m, v.ID, "first")
	return v
}

// write stages a volume, writes a file, and unstages it.
func (c *cluster) write(m *Manager, id, content string) {
	c.Helper()
	dir, err := m.Acquire(c.Context(), id, "/stage")
	if err != nil {
		c.Fatal(err)
	}
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
	if err := m.Release(c.Context(), id, nothing); err != nil {
		c.Fatal(err)
	}
}

// nothing unmounts nothing.
func nothing() error { return nil }

// data returns what a node has of a volume: state, and content of the file.
func (c *cluster) data(m *Manager, id string) string {
	c.Helper()
	v, err := m.Store.Get(id)
	if err != nil {
		return "none"
	}
	dir, err := m.Store.DataDir(v)
	if err != nil {
		return string(v.State)
	}
	content, err := os.ReadFile(filepath.Join(dir, "link"))
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

type killed struct{}

// killAt ends what is done at the nth step of a driver, as kill -9 would, or returns
// false if it has fewer steps.
func killAt(n int, m *Manager, do func()) (died bool) {
	m.Store.Fault = func(string) {
		if n--; n == 0 {
			panic(killed{})
		}
	}
	defer func() {
		m.Store.Fault = nil
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	do()
	return false
}
