package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
)

// twoPools is a node with pools a and b, and a volume with data in each.
type twoPools struct {
	*testing.T
	root string
	ids  map[string]string // of the volumes, by pools
	says Placement
}

func newTwoPools(t *testing.T) *twoPools {
	p := &twoPools{T: t, root: t.TempDir(), ids: map[string]string{}, says: agrees{}}
	m := p.start()
	for _, name := range []string{"a", "b"} {
		v, err := m.Create(t.Context(), pool.Volume{Name: "of " + name, CapacityBytes: gi, Pools: []string{name}}, 0)
		if err := errors.Join(err, os.WriteFile(filepath.Join(v.Path, "file"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		p.ids[name] = v.ID
	}
	return p
}

func (p *twoPools) start() *Manager {
	p.Helper()
	size := resource.MustParse("10Gi")
	store, err := pool.Create(p.root, "n", []pool.Pool{{Name: "a", Size: size}, {Name: "b", Size: size}})
	if err != nil {
		p.Fatal(err)
	}
	m, err := New(p.Context(), &Manager{Store: store, Backing: Folders{}, Mounter: mount.NewFakeMounter(nil), Placement: p.says})
	if err != nil {
		p.Fatal(err)
	}
	return m
}

func (p *twoPools) disk(name string) string { return filepath.Join(p.root, "pools/n", name) }

// swap mounts the disk of each pool as the other one.
func (p *twoPools) swap() {
	p.Helper()
	if err := errors.Join(os.Rename(p.disk("a"), p.disk("x")), os.Rename(p.disk("b"), p.disk("a")), os.Rename(p.disk("x"), p.disk("b"))); err != nil {
		p.Fatal(err)
	}
}

// expect checks that the data of both volumes is there, on disks that are mounted as the pools of names, and which pools
// offer room.
func (p *twoPools) expect(m *Manager, a, b string, rooms int) {
	p.Helper()
	for volume, disk := range map[string]string{"a": a, "b": b} {
		if _, err := os.Stat(filepath.Join(p.disk(disk), "volumes", p.ids[volume], "file")); err != nil {
			p.Errorf("the data of a volume is gone: %v", err)
		}
	}
	if got, err := m.Store.Rooms(nil); err != nil || len(got) != rooms {
		p.Errorf("room in %v, %v; expected %d pools", got, err, rooms)
	}
}

// TestSwappedDisks has the disks of two pools mounted in each other's place, as after a reboot that gives their devices
// other names. Nothing on them is removed or made until they are back.
func TestSwappedDisks(t *testing.T) {
	p := newTwoPools(t)
	p.swap()
	m := p.start()
	p.expect(m, "b", "a", 0)
	v, err := m.Store.Get(p.ids["a"])
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Store.Discard(v); err == nil {
		t.Error("what is on another disk counts as removed")
	}
	if _, err := m.makeData(v); err == nil {
		t.Error("made on another disk")
	}
	p.swap()
	p.expect(p.start(), "a", "b", 2)
}

// TestRecordLost starts a driver with books that are older than a volume. Its data may be needed.
func TestRecordLost(t *testing.T) {
	p := newTwoPools(t)
	if err := os.Remove(filepath.Join(p.root, "books/n", p.ids["a"]+".json")); err != nil {
		t.Fatal(err)
	}
	p.expect(p.start(), "a", "b", 2)
}

// TestOlderBooks starts a driver with books from when a copy was not complete. If the PersistentVolume names the node, or
// cannot be asked, it may be the only one. When that can be told, it goes without another restart.
func TestOlderBooks(t *testing.T) {
	for name, answer := range map[string]error{
		"named":          status.Error(codes.FailedPrecondition, "volume is here"),
		"cannot be told": status.Error(codes.Unavailable, "away"),
	} {
		for _, state := range []pool.State{pool.Creating, pool.Rebuilding} {
			t.Run(name+", "+string(state), func(t *testing.T) {
				p := newTwoPools(t)
				if _, err := p.start().Store.Update(p.ids["a"], func(v *pool.Volume) error { v.State = state; return nil }); err != nil {
					t.Fatal(err)
				}
				p.says = says{answer}
				m := p.start()
				p.expect(m, "a", "b", 2)
				m.Sweep(t.Context())
				p.expect(m, "a", "b", 2)
				if err := m.Release(t.Context(), p.ids["a"], t.TempDir()); status.Code(err) == codes.Internal {
					t.Error(err)
				}
				p.expect(m, "a", "b", 2)
				m.Placement = agrees{}
				m.Sweep(t.Context())
				if v, err := m.Store.Get(p.ids["a"]); err == nil {
					t.Errorf("half a volume stays: %v", v)
				}
			})
		}
	}
}

// says is one that always says the same.
type says struct{ error }

func (says) IsOff(context.Context, string) bool                                    { return true }
func (says) Self(context.Context, string) (string, error)                          { return "uid", nil }
func (s says) Ask(context.Context, Question, pool.Volume, string, ...string) error { return s.error }
