package pool

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRemoveUnknown has data that is in no books. What the driver has left is removed, and nothing else.
func TestRemoveUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		prepare func(*Store) error
		stays   bool
	}{
		"unknown":               {file: "v", stays: true},
		"copy that was cut":     {file: "v" + copying},
		"removed half":          {file: "v" + suffix},
		"of the node x.removed": {file: "v@x.removed", stays: true},
		"on another disk": {file: "v" + suffix, prepare: func(s *Store) error {
			return os.WriteFile(diskID(s.folder("a")), []byte("other"), 0o600)
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := create(t, t.TempDir(), "n", 1)
			path := filepath.Join(s.folder("a"), test.file)
			err := os.Mkdir(path, 0o700)
			if err == nil && test.prepare != nil {
				err = test.prepare(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := s.RemoveUnknown(); (err != nil) != test.stays {
				t.Errorf("got error %v", err)
			}
			if _, err := os.Stat(path); (err == nil) != test.stays {
				t.Errorf("it stays: %t, %v", !test.stays, err)
			}
		})
	}
}

// TestDiskOfOtherPool makes a pool on a disk that was one of another pool, or of books that were lost.
func TestDiskOfOtherPool(t *testing.T) {
	root := t.TempDir()
	s := create(t, root, "n", 1)
	before, err := os.ReadFile(diskID(s.folder("a")))
	if err := errors.Join(err, os.Remove(s.known("a"))); err != nil {
		t.Fatal(err)
	}
	if left := available(t, create(t, root, "n", 1)); len(left) != 1 {
		t.Errorf("%d are left; expected 1 pool", left)
	}
	if now, err := os.ReadFile(diskID(s.folder("a"))); err != nil || len(now) == 0 || string(now) == string(before) {
		t.Errorf("ID %q, %v; expected another one than %q", now, err, before)
	}
}

// TestNoMark has a disk that takes no ID at the start of a driver. Its pool is away until it does, and no other pool is.
func TestNoMark(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	mount := func(disk string, flags uintptr) error { return unix.Mount("tmpfs", disk, "tmpfs", flags, "size=8k") }
	for name, test := range map[string]struct {
		spoil      func(disk string) error
		mend       func(disk string) error
		left, then []int64
	}{
		"full": {spoil: fill, mend: free, left: []int64{5}, then: []int64{10, 5}},
		"read-only": {
			spoil: func(disk string) error { return mount(disk, unix.MS_REMOUNT|unix.MS_RDONLY) },
			mend:  func(disk string) error { return mount(disk, unix.MS_REMOUNT) },
			left:  []int64{5}, then: []int64{10, 5},
		},
		"killed before it was in the books": {
			spoil: func(disk string) error { return os.WriteFile(filepath.Join(disk, "id"), []byte("other"), 0o600) },
			mend:  free, left: []int64{10, 5}, then: []int64{10, 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			disk := filepath.Join(root, "pools/n/a")
			if err := errors.Join(os.MkdirAll(disk, 0o700), mount(disk, 0)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := unix.Unmount(disk, 0); err != nil {
					t.Error(err)
				}
			})
			if err := test.spoil(disk); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if left := available(t, create(t, root, "n", 10, 5)); !reflect.DeepEqual(left, test.left) {
					t.Errorf("%d are left; expected %d", left, test.left)
				}
			}
			if err := test.mend(disk); err != nil {
				t.Fatal(err)
			}
			s := create(t, root, "n", 10, 5)
			if left := available(t, s); !reflect.DeepEqual(left, test.then) {
				t.Errorf("then, %d are left; expected %d", left, test.then)
			}
		})
	}
}

func fill(disk string) error {
	if err := os.WriteFile(filepath.Join(disk, "full"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		return errors.Join(errors.New("the disk is not full"), err)
	}
	return nil
}

func free(disk string) error { return os.RemoveAll(filepath.Join(disk, "full")) }
