package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

const gi = 1 << 30

// create opens a node whose pools a, b, ... have sizes in Gi.
func create(t *testing.T, root, node string, sizes ...int64) *Store {
	t.Helper()
	var pools []Pool
	for i, size := range sizes {
		pools = append(pools, Pool{Name: string(rune('a' + i)), Size: *resource.NewQuantity(size*gi, resource.BinarySI)})
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
	var (
		wg    sync.WaitGroup
		mutex sync.Mutex
		taken int
	)
	for i := range 30 {
		wg.Go(func() {
			_, err := create(t, root, "n", 5, 5).Reserve(Volume{ID: ID(fmt.Sprint(i), "n"), State: Ready, CapacityBytes: gi})
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
	if left := available(t, create(t, root, "n", 5, 5)); taken != 10 || !reflect.DeepEqual(left, []int64{0, 0}) {
		t.Errorf("%d volumes have room; expected 10; left: %d", taken, left)
	}
}

// TestDiscard checks that nothing is left of a volume, and that one is left alone that has
// changed since somebody decided to remove it.
func TestDiscard(t *testing.T) {
	s := create(t, t.TempDir(), "n", 10)
	v, err := s.Reserve(Volume{ID: ID("v", "n"), State: Ready, CapacityBytes: gi})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(v.Path, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Volume){
		"state":      func(v *Volume) { v.State = Rebuilding },
		"generation": func(v *Volume) { v.Generation++ },
		"staged":     func(v *Volume) { v.StagedAt = "/stage" },
	} {
		before := v
		change(&before)
		if err := s.Discard(before); err == nil {
			t.Errorf("%s: a volume that has changed was removed", name)
		}
	}
	for range 2 {
		if err := s.Discard(v); err != nil {
			t.Fatal(err)
		}
		if files, err := os.ReadDir(filepath.Dir(v.Path)); err != nil || len(files) != 0 {
			t.Errorf("left: %v, %v", files, err)
		}
		if _, err := s.Get(v.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("the volume is remembered: %v", err)
		}
	}
	if left := available(t, s); left[0] != 10 {
		t.Errorf("%d are left; expected 10", left)
	}
}

// TestNotMounted restarts a driver while the disk of a pool is not mounted. The room on it is not
// offered, and what is on it does not count as removed.
func TestNotMounted(t *testing.T) {
	root := t.TempDir()
	s := create(t, root, "n", 10, 5)
	v, err := s.Reserve(Volume{ID: "v", CapacityBytes: gi})
	if err == nil {
		err = os.Mkdir(v.Path, 0o700)
	}
	disk := filepath.Join(root, "pools/n", v.Pool)
	if err := errors.Join(err, os.Rename(disk, disk+".away"), os.Mkdir(disk, 0o700)); err != nil {
		t.Fatal(err)
	}
	s = create(t, root, "n", 10, 5)
	if left := available(t, s); !reflect.DeepEqual(left, []int64{10}) {
		t.Errorf("%d are left; expected those of the other pool", left)
	}
	if v, err := s.Reserve(Volume{ID: "w", CapacityBytes: gi, Pools: []string{v.Pool}}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("reserved: %v, %v", v, err)
	}
	if err := s.Discard(v); err == nil {
		t.Error("removed")
	}
	if _, err := s.Get(v.ID); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(disk), os.Rename(disk+".away", disk)); err != nil {
		t.Fatal(err)
	}
	if left := available(t, s); !reflect.DeepEqual(left, []int64{10, 4}) {
		t.Errorf("mounted: %d are left", left)
	}
	if err := s.Discard(v); err != nil {
		t.Error(err)
	}
}

// TestNewBooks has a disk with data that is in no books, because they were lost. Nobody but an
// administrator can tell whether it is needed.
func TestNewBooks(t *testing.T) {
	root := t.TempDir()
	s := create(t, root, "n", 10)
	v, err := s.Reserve(Volume{ID: "v", CapacityBytes: gi})
	if err := errors.Join(err, os.Mkdir(v.Path, 0o700), os.RemoveAll(s.dir)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Create(root, "n", s.pools); err == nil {
			t.Error("the pool is used")
		}
	}
	if err := os.Remove(v.Path); err != nil {
		t.Fatal(err)
	}
	if left := available(t, create(t, root, "n", 10)); left[0] != 10 {
		t.Errorf("%d are left", left)
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

// TestRootIsPattern has a root that is a pattern of file names, which does not match itself.
func TestRootIsPattern(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "a[b]*"), "n", 10)
	if _, err := s.Reserve(Volume{ID: "v", CapacityBytes: gi}); err != nil {
		t.Fatal(err)
	}
	if left := available(t, s); left[0] != 9 {
		t.Errorf("%d are left; expected 9", left)
	}
}

// TestDiscardAgain has a removal that failed in the middle, and a volume of the same ID after it.
func TestDiscardAgain(t *testing.T) {
	s, err := Create(t.TempDir(), "n", []Pool{{Name: "p", Size: resource.MustParse("1Gi")}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Reserve(Volume{ID: "v"})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{v.Path, v.Path + suffix} {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Discard(v); err != nil {
		t.Error(err)
	}
}

// TestDiscardReplaced has a record that a new copy takes while the data of the old one is removed. It stays.
func TestDiscardReplaced(t *testing.T) {
	s := create(t, t.TempDir(), "n", 10)
	v, err := s.Reserve(Volume{ID: "v", State: Rebuilt, CapacityBytes: gi})
	if err := errors.Join(err, os.Mkdir(v.Path, 0o700)); err != nil {
		t.Fatal(err)
	}
	s.Fault = func(step string) {
		if step == "remove data" {
			if _, err := s.Update(v.ID, func(v *Volume) error { v.State = Rebuilding; return nil }); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Discard(v); err == nil {
		t.Error("the new copy counts as removed")
	}
	if now, err := s.Get(v.ID); err != nil || now.State != Rebuilding {
		t.Errorf("the new copy: %v, %v", now, err)
	}
	if left := available(t, s); left[0] != 9 {
		t.Errorf("%d are left; expected 9", left)
	}
}

// TestLockHeld has another process that keeps the lock, because its disk hangs. Nobody waits for
// it without an end.
func TestLockHeld(t *testing.T) {
	defer func(before time.Duration) { lockTime = before }(lockTime)
	lockTime = 10 * time.Millisecond
	s, err := Create(t.TempDir(), "n", nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := lockFolder(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := s.Volumes(); ended <- err }()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrAway) {
			t.Errorf("without the lock: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits without an end")
	}
	unlock()
	if _, err := s.Volumes(); err != nil {
		t.Error(err)
	}
}

// TestOwn has a second driver on a node, such as one whose pod replaces one that was deleted by
// force.
func TestOwn(t *testing.T) {
	root := t.TempDir()
	first, second := create(t, root, "n", 1), create(t, root, "n", 1)
	if err := first.Own(); err != nil {
		t.Fatal(err)
	}
	if err := second.Own(); err == nil {
		t.Error("two drivers run")
	}
	if err := create(t, root, "m", 1).Own(); err != nil {
		t.Error(err)
	}
	if err := first.owned.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	if err := second.Own(); err != nil {
		t.Error(err)
	}
}

// TestRecord: what is recorded tells what takes room.
func TestRecord(t *testing.T) {
	root := t.TempDir()
	s := create(t, root, "n", 2)
	var got []string
	s.Record = func(event, node string, v Volume) {
		got = append(got, fmt.Sprintf("%s %s %s %s %d", event, node, v.ID, v.Pool, v.CapacityBytes/gi))
	}
	if _, err := s.Reserve(Volume{ID: "old", CapacityBytes: gi}); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(Volume{ID: "large", CapacityBytes: 2 * gi}); !errors.Is(err, ErrNoRoom) {
		t.Fatal(err)
	}
	old, err := s.Get("old")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(old); err != nil {
		t.Fatal(err)
	}
	want := []string{"takes n old a 1", "taken n old a 1", "pool n  a 2", "has n old a 1", "started n   0", "refused n large  2", "gives back n old a 1", "given back n old a 1"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
