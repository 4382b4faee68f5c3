package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DataDir returns the folder with the data of a volume on this node.
func (s *Store) DataDir(v Volume) (string, error) {
	var pools []Pool
	if err := read(filepath.Join(s.dir, "pools.json"), &pools); err != nil {
		return "", err
	}
	for _, p := range pools {
		if p.Name == v.Pool {
			return filepath.Join(p.Path, v.ID), nil
		}
	}
	return "", fmt.Errorf("node %s has no pool %s any more, which has volume %s", s.Node, v.Pool, v.ID)
}

// Discard removes the data of a volume, and gives its room back. It can be repeated,
// and a restart goes on with it.
//
// After that, the node remembers as little as it needs to answer a DeleteVolume call:
// nothing at all, or that it has deleted a volume of another node, or, with moved, that
// a volume of its own lives elsewhere.
func (s *Store) Discard(id string, moved bool) error {
	during, after := Deleting, Deleted
	if moved {
		during, after = Leaving, Moved
	}
	v, err := s.Update(id, func(v *Volume) error {
		if v.TakesRoom() {
			v.State = during
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if v.TakesRoom() {
		dir, err := s.DataDir(v)
		if err != nil {
			return err
		}
		s.Step("before removing data")
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := SyncFolder(filepath.Dir(dir)); err != nil {
			return err
		}
		s.Step("after removing data")
	}
	if created := Creator(id) == s.Node; created == moved {
		_, err := s.Update(id, func(v *Volume) error {
			*v = Volume{ID: v.ID, Name: v.Name, State: after}
			return nil
		})
		return err
	}
	return s.locked(func(books) error { return s.remove(s.file(id)) })
}
