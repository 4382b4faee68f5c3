package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

const gi = 1 << 30

// create opens a node whose pools a, b, ... have sizes in Gi.
func create(t *testing.T, root, node string, sizes ...int64) *Store {
	t.Helper()
	var pools []Pool
	for i, size := range sizes {
		name := string(rune('a' + i))
		pools = append(pools, Pool{Name: name, Path: filepath.Join(root, node, "pools", name), Size: *resource.NewQuantity(size*gi, resource.BinarySI)})
	}
	s, err := Create(root, node, pools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func available(t *testing.T, s *Store, pools ...string) []int64 {
	t.Helper()
	rooms, err := s.Rooms(pools)
	if err != nil {
		t.Fatal(err)
	}
	var bytes []int64
	for _, r := range rooms {
		bytes = append(bytes, r.AvailableBytes/gi)
	}
	return bytes
}

func TestReserve(t *testing.T) {
	for name, test := range map[string]struct {
		sizes   []int64
		allowed []string
		volumes []int64
		want    []string // pools; empty: no room
		left    []int64
	}{
		"best fit":            {sizes: []int64{10, 5, 7}, volumes: []int64{5, 6, 8}, want: []string{"b", "c", "a"}, left: []int64{2, 0, 1}},
		"same room":           {sizes: []int64{4, 4}, volumes: []int64{2, 1}, want: []string{"a", "a"}, left: []int64{1, 4}},
		"no volume spans two": {sizes: []int64{4, 4}, volumes: []int64{5}, want: []string{""}, left: []int64{4, 4}},
		"allowed":             {sizes: []int64{4, 9}, allowed: []string{"b"}, volumes: []int64{1, 9}, want: []string{"b", ""}, left: []int64{4, 8}},
		"none of the allowed": {sizes: []int64{4}, allowed: []string{"z"}, volumes: []int64{1}, want: []string{""}, left: []int64{4}},
		"full":                {sizes: []int64{4}, volumes: []int64{4, 1}, want: []string{"a", ""}, left: []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			s := create(t, t.TempDir(), "n", test.sizes...)
			for i, size := range test.volumes {
				v, err := s.Reserve(Volume{ID: ID(fmt.Sprint(i), "n"), State: Ready, CapacityBytes: size * gi, Pools: test.allowed})
				if (err == nil) != (test.want[i] != "") || err != nil && !errors.Is(err, ErrNoRoom) || err == nil && v.Pool != test.want[i] {
					t.Errorf("volume %d: pool %q, error %v; expected %q", i, v.Pool, err, test.want[i])
				}
			}
			if left := available(t, s); !reflect.DeepEqual(left, test.left) {
				t.Errorf("%d are left; expected %d", left, test.left)
			}
		})
	}
}

// TestAtOnce reserves from several processes, as far as locks can tell.
func TestAtOnce(t *testing.T) {
	root := t.TempDir()
	create(t, root, "n", 5, 5)
	var (
		wg    sync.WaitGroup
		mutex sync.Mutex
		taken int
	)
	for i := range 30 {
		wg.Go(func() {
			s, err := Open(root, "n")
			if err != nil {
				t.Error(err)
				return
			}
			_, err = s.Reserve(Volume{ID: ID(fmt.Sprint(i), "n"), State: Ready, CapacityBytes: gi})
			if err != nil && !errors.Is(err, ErrNoRoom) {
				t.Error(err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				taken++
			}
		})
	}
	wg.Wait()
	if s, err := Open(root, "n"); err != nil || taken != 10 || !reflect.DeepEqual(available(t, s), []int64{0, 0}) {
		t.Errorf("%d volumes have room; expected 10 (%v)", taken, err)
	}
}

func TestResize(t *testing.T) {
	s := create(t, t.TempDir(), "n", 10)
	id := ID("v", "n")
	if _, err := s.Reserve(Volume{ID: id, State: Ready, CapacityBytes: 4 * gi}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		size, want int64
		noRoom     bool
	}{{6, 6, false}, {5, 6, false}, {11, 6, true}, {10, 10, false}} {
		v, err := s.Resize(id, test.size*gi)
		if errors.Is(err, ErrNoRoom) != test.noRoom || err == nil && v.CapacityBytes != test.want*gi {
			t.Errorf("to %d: got %d, %v", test.size, v.CapacityBytes/gi, err)
		}
		if left := available(t, s)[0]; left != 10-test.want {
			t.Errorf("to %d: %d are left; expected %d", test.size, left, 10-test.want)
		}
	}
}

// TestDiscard checks what a node remembers of a volume that is not there any more.
func TestDiscard(t *testing.T) {
	for name, test := range map[string]struct {
		creator string
		moved   bool
		want    State // empty: nothing
	}{
		"own volume deleted":      {creator: "n"},
		"own volume moved":        {creator: "n", moved: true, want: Moved},
		"volume of other deleted": {creator: "m", want: Deleted},
		"volume of other moved":   {creator: "m", moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := create(t, t.TempDir(), "n", 10)
			id := ID("v", test.creator)
			v, err := s.Reserve(Volume{ID: id, State: Ready, CapacityBytes: gi})
			if err != nil {
				t.Fatal(err)
			}
			dir, err := s.DataDir(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o700); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Discard(id, test.moved); err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("the data is still there: %v", err)
				}
				if v, err = s.Get(id); v.State != test.want || (test.want == "") != errors.Is(err, ErrNotFound) {
					t.Errorf("%q is remembered, error %v; expected %q", v.State, err, test.want)
				}
			}
			if left := available(t, s); left[0] != 10 {
				t.Errorf("%d are left; expected 10", left)
			}
		})
	}
}

type killed struct{}

// killAt ends what is done at the nth step, as kill -9 would, or returns false if it has
// fewer steps.
func killAt(n int, stores []*Store, do func()) (died bool) {
	for _, s := range stores {
		s.Fault = func(string) {
			if n--; n == 0 {
				panic(killed{})
			}
		}
		defer func() { s.Fault = nil }()
	}
	defer func() {
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

// TestKilled kills each change at each step. After that, the books are those from before
// or after the change, and the change can be repeated.
func TestKilled(t *testing.T) {
	id := ID("v", "n")
	volume := Volume{ID: id, State: Creating, CapacityBytes: 4 * gi}
	reserve := func(s *Store) error { _, err := s.Reserve(volume); return err }
	for name, test := range map[string]struct {
		before, change func(*Store) error
		left           []int64 // before and after
	}{
		"reserve": {func(*Store) error { return nil }, reserve, []int64{10, 6}},
		"resize":  {reserve, func(s *Store) error { _, err := s.Resize(id, 5*gi); return err }, []int64{6, 5}},
		"discard": {reserve, func(s *Store) error { return s.Discard(id, false) }, []int64{6, 10}},
		"move":    {reserve, func(s *Store) error { return s.Discard(id, true) }, []int64{6, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			for n := 1; ; n++ {
				root := t.TempDir()
				s := create(t, root, "n", 10)
				if err := test.before(s); err != nil {
					t.Fatal(err)
				}
				died := killAt(n, []*Store{s}, func() {
					if err := test.change(s); err != nil {
						t.Error(err)
					}
				})
				s = create(t, root, "n", 10) // restart
				if left := available(t, s)[0]; left != test.left[0] && left != test.left[1] {
					t.Errorf("killed at step %d: %d are left; expected one of %d", n, left, test.left)
				}
				if err := test.change(s); err != nil {
					t.Errorf("killed at step %d: repeated: %v", n, err)
				}
				if left := available(t, s)[0]; left != test.left[1] {
					t.Errorf("killed at step %d: %d are left after it was repeated; expected %d", n, left, test.left[1])
				}
				if !died {
					break
				}
				steps++
			}
			if steps < 3 {
				t.Errorf("%d steps were found; expected at least 3", steps)
			}
		})
	}
}

func TestTornFile(t *testing.T) {
	root := t.TempDir()
	s := create(t, root, "n", 10)
	// As after a crash in the middle of writing the temporary file.
	if err := os.WriteFile(s.file("x")+".tmp", []byte(`{"id": `), 0o600); err != nil {
		t.Fatal(err)
	}
	if left := available(t, s); left[0] != 10 {
		t.Errorf("%d are left", left)
	}
}
