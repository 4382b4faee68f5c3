package pool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// peer opens the books of node m, which have a record that this node did not write.
func peer(t *testing.T, file, record string) *Store {
	t.Helper()
	root := t.TempDir()
	s := create(t, root, "n", 10)
	create(t, root, "m", 10)
	if err := os.WriteFile(filepath.Join(root, "books/m", file), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	others, err := s.Others()
	if err != nil || len(others) != 1 {
		t.Fatal(others, err)
	}
	return others[0]
}

// TestPeerPath has a peer that says where its data is. It is where the pool of that node is, and stays there.
func TestPeerPath(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	s := peer(t, "v.json", fmt.Sprintf(`{"id":"v","state":"ready","pool":"a","capacityBytes":1,"path":%q}`, secret))
	v, err := s.Get("v")
	if want := filepath.Join(filepath.Dir(filepath.Dir(s.dir)), "pools/m/a/volumes/v"); err != nil || v.Path != want {
		t.Errorf("data at %q, %v; expected %q", v.Path, err, want)
	}
	if err := s.Discard(v); err == nil {
		t.Error("what another node has was removed")
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

// TestPeerNames has records with names that lead elsewhere.
func TestPeerNames(t *testing.T) {
	for name, record := range map[string]string{
		"pool":       `{"id":"v","state":"ready","pool":"../../n/a","capacityBytes":1}`,
		"other ID":   `{"id":"w","state":"ready","pool":"a","capacityBytes":1}`,
		"ID":         `{"id":"../v","state":"ready","pool":"a","capacityBytes":1}`,
		"no pool":    `{"id":"v","state":"ready","capacityBytes":1}`,
		"takes room": `{"id":"v","state":"ready","pool":"a","capacityBytes":-1}`,
	} {
		if v, err := peer(t, "v.json", record).Get("v"); !errors.Is(err, ErrAway) {
			t.Errorf("%s: got %v, %v", name, v, err)
		}
	}
	s := peer(t, "w.json", `{`)
	if _, err := s.Get("v"); !errors.Is(err, ErrNotFound) {
		t.Errorf("another broken record: %v", err)
	}
	if _, err := s.Get("../n/v"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an ID that leads elsewhere: %v", err)
	}
}

// TestPeerLinks has links in the place of what this node opens.
func TestPeerLinks(t *testing.T) {
	host := filepath.Join(t.TempDir(), "host")
	if err := os.WriteFile(host, []byte("host"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := peer(t, "v.json", `{"id":"v","state":"ready","pool":"a","capacityBytes":1}`)
	if err := os.Symlink(host, s.file("v")+".tmp"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update("v", func(*Volume) error { return nil }); err == nil {
		t.Error("wrote through a link")
	}
	if data, err := os.ReadFile(host); err != nil || string(data) != "host" {
		t.Errorf("file of the host: %q, %v", data, err)
	}
	v, err := s.Get("v")
	if err := errors.Join(err, os.Rename(filepath.Dir(v.Path), filepath.Dir(v.Path)+".away"), os.Symlink(t.TempDir(), filepath.Dir(v.Path))); err != nil {
		t.Fatal(err)
	}
	if err := s.Mounted(v); err == nil {
		t.Error("a link counts as the folder of a pool")
	}
}

// TestPeerPipe has pipes in the place of what is read of a disk: nothing waits for them.
func TestPeerPipe(t *testing.T) {
	for name, path := range map[string]func(s *Store) string{
		"ID in the books": func(s *Store) string { return s.known("a") },
		"ID on the disk":  func(s *Store) string { return diskID(s.folder("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := peer(t, "v.json", `{"id":"v","state":"ready","pool":"a","capacityBytes":1}`)
			if err := os.Remove(path(s)); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(path(s), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.mounted("a", s.folder("a")); err == nil || !strings.Contains(err.Error(), "no regular file") {
				t.Errorf("got %v, want no regular file", err)
			}
		})
	}
}

// TestOddNames has a file in the books whose name is no volume's: the others can still be used.
func TestOddNames(t *testing.T) {
	s := peer(t, "v.json", `{"id":"v","state":"ready","pool":"a","capacityBytes":1}`)
	if err := os.WriteFile(filepath.Join(s.dir, "v (backup).json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Volumes(); err != nil {
		t.Error(err)
	}
}
