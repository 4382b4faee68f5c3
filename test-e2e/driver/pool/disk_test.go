package pool

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestRemoveUnknown has data that is in no books. What the driver has left is removed, and nothing else.
func TestRemoveUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		prepare func(*Store) error
		stays   bool
	}{
		"unknown":                 {file: "v", stays: true},
		"copy":                    {file: "v", prepare: func(s *Store) error { return s.MarkCopy("v", true) }},
		"copy that was completed": {file: "v", prepare: func(s *Store) error { return errors.Join(s.MarkCopy("v", true), s.MarkCopy("v", false)) }, stays: true},
		"removed half":            {file: "v.removed"},
		"on another disk": {file: "v.removed", prepare: func(s *Store) error {
			return os.WriteFile(diskID(s.folder("a")), []byte("other"), 0o600)
		}, stays: true},
		"copy that was completed, and its mark not removed": {file: "v", prepare: func(s *Store) error {
			_, err := s.Reserve(Volume{ID: "v", State: Ready})
			return errors.Join(err, s.MarkCopy("v", true), s.RemoveUnknown(), os.Remove(s.file("v")))
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
