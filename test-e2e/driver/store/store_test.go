// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
)

const mi = 1 << 20

var pools = map[string]resource.Quantity{"a": resource.MustParse("8Mi"), "b": resource.MustParse("6Mi")}

func open(t *testing.T, own string) *Store {
	t.Helper()
	s := New(own, "n", pools)
	if err := errors.Join(os.MkdirAll(own, 0o700), os.WriteFile(filepath.Join(own, "owner"), []byte("n"), 0o600), s.Check()); err != nil {
		t.Fatal(err)
	}
	return s
}

func reserve(t *testing.T, s *Store, handle string, bytes int64, allowed ...string) Copy {
	t.Helper()
	c, err := s.Reserve(t.Context(), Copy{Handle: handle, ID: "first", State: Ready, Bytes: bytes, Pools: strings.Join(allowed, ",")})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Do(t.Context(), c, func(path string) error { return os.WriteFile(path, make([]byte, bytes), 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func expectRooms(t *testing.T, s *Store, a, b int64) {
	t.Helper()
	rooms := s.Rooms(t.Context(), "")
	for name, want := range map[string]int64{"a": a, "b": b} {
		got, ok := rooms[name]
		if got = got / mi; !ok {
			got = -1
		}
		if got != want {
			t.Errorf("pool %s: %d Mi; expected %d", name, got, want)
		}
	}
}

// TestBestFit takes the smallest pool that has room, and keeps what was taken over a restart.
func TestBestFit(t *testing.T) {
	own := t.TempDir()
	s := open(t, own)
	for _, want := range []struct {
		handle, pool string
		bytes        int64
		allowed      []string
	}{{"v1", "b", 5 * mi, nil}, {"v2", "a", 2 * mi, nil}, {"v3", "b", mi, nil}, {"v4", "a", mi, []string{"a"}}} {
		if c := reserve(t, s, want.handle, want.bytes, want.allowed...); c.Pool != want.pool {
			t.Errorf("%s is in pool %s; expected %s", want.handle, c.Pool, want.pool)
		}
	}
	expectRooms(t, s, 5, 0)
	if _, err := s.Reserve(t.Context(), Copy{Handle: "v5", ID: "first", Bytes: 6 * mi}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("got %v; expected no room", err)
	}
	expectRooms(t, open(t, own), 5, 0)
}

// TestParallel has several copies take all the room at the same time, and one that finds none.
func TestParallel(t *testing.T) {
	s := open(t, t.TempDir())
	failed := make(chan error, 5)
	for i := range cap(failed) {
		go func() {
			_, err := s.Reserve(t.Context(), Copy{Handle: fmt.Sprint(i), ID: "first", Bytes: 3 * mi})
			failed <- err
		}()
	}
	var errs []error
	for range cap(failed) {
		if err := <-failed; err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) != 1 || !errors.Is(errs[0], ErrNoRoom) {
		t.Errorf("got %v; expected that one has no room", errs)
	}
	if copies, err := s.Copies(""); err != nil || len(copies) != 4 {
		t.Errorf("%d records, %v; expected 4", len(copies), err)
	}
	expectRooms(t, s, 2, 0)
}

// TestUnreadable has a record that cannot be read, and data that is in no record: they cost their volume, and their room.
func TestUnreadable(t *testing.T) {
	own := t.TempDir()
	s := open(t, own)
	c := reserve(t, s, "v1", 3*mi, "a")
	reserve(t, s, "v2", mi, "a")
	expectRooms(t, s, 4, 6)
	if err := os.WriteFile(s.record(c), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	unknown := Copy{Handle: "v3", ID: "first", Pool: "b"}
	if err := os.WriteFile(s.Path(unknown), make([]byte, 2*mi), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, own)
	expectRooms(t, s, 4, 4)
	if _, err := s.Copies("v1"); !errors.Is(err, ErrAway) {
		t.Errorf("v1: %v", err)
	}
	if copies, err := s.Copies("v2"); err != nil || len(copies) != 1 {
		t.Errorf("v2: %v, %v", copies, err)
	}
	if _, err := os.Stat(s.Path(unknown)); err != nil {
		t.Error(err)
	}
}

// TestAway has folders and disks that are not mounted, or another one in their place.
func TestAway(t *testing.T) {
	own := t.TempDir()
	s := open(t, own)
	c := reserve(t, s, "v", mi, "a")
	if err := New(t.TempDir(), "n", pools).Check(); !errors.Is(err, ErrAway) {
		t.Errorf("not mounted: %v", err)
	}
	if err := New(own, "m", pools).Check(); !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), `its owner is node "n"`) {
		t.Errorf("that of another node: %v", err)
	}
	disk := filepath.Join(own, "pools", "a")
	if err := os.Rename(disk, disk+"-away"); err != nil {
		t.Fatal(err)
	}
	s = open(t, own)
	expectRooms(t, s, -1, 6)
	if err := s.See(t.Context(), c); !errors.Is(err, ErrAway) {
		t.Errorf("open: %v", err)
	}
	if err := s.Remove(t.Context(), c); !errors.Is(err, ErrAway) {
		t.Errorf("remove: %v", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(disk, "volumes"), 0o700), os.WriteFile(filepath.Join(disk, "id"), []byte("other"), 0o600)); err != nil {
		t.Fatal(err)
	}
	expectRooms(t, s, -1, 6)
	if err := errors.Join(os.RemoveAll(disk), os.Rename(disk+"-away", disk)); err != nil {
		t.Fatal(err)
	}
	expectRooms(t, s, 7, 6)
	if err := os.Rename(own, own+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Copies("v")
	if !errors.Is(err, ErrAway) || !errors.Is(s.Check(), ErrAway) {
		t.Errorf("the folder is gone: %v, %v", err, s.Check())
	}
}

// TestNewPool does not take a disk with data for a new one.
func TestNewPool(t *testing.T) {
	own := t.TempDir()
	if err := os.MkdirAll(filepath.Join(own, "pools", "a", "volumes", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	expectRooms(t, open(t, own), -1, 6)
}

// TestHung has a disk that hangs: the other one goes on.
func TestHung(t *testing.T) {
	s := open(t, t.TempDir())
	c := reserve(t, s, "v", mi, "a")
	hangs := make(chan bool)
	defer close(hangs)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Do(ctx, c, func(string) error { <-hangs; return nil }); !errors.Is(err, ErrAway) {
		t.Errorf("got %v; expected that it hangs", err)
	}
	expectRooms(t, s, -1, 6)
	reserve(t, s, "w", mi)
	if err := s.Wait(ctx, c); !errors.Is(err, ErrAway) {
		t.Errorf("something may be mounted later: %v", err)
	}
}

// TestPeer has all that a node finds that another one has put in its folder: links, other kinds of files, other sizes.
func TestPeer(t *testing.T) {
	root := t.TempDir()
	host := filepath.Join(root, "host")
	own := filepath.Join(root, "m")
	s := open(t, own)
	c := reserve(t, s, "v", mi, "a")
	data := s.Path(c)
	peer := Peer(own)
	file, err := peer.Open("v", "first", mi)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := file.ReadAt(make([]byte, mi), 0); n != mi || file.Close() != nil {
		t.Errorf("read %d bytes: %v", n, err)
	}
	for name, attack := range map[string]func() error{
		"link out of it":       func() error { return os.Symlink(host, data) },
		"link in it":           func() error { return os.Symlink("../../../owner", data) },
		"folder":               func() error { return os.Mkdir(data, 0o700) },
		"pipe":                 func() error { return mkfifo(data) },
		"smaller":              func() error { return os.WriteFile(data, make([]byte, mi-512), 0o600) },
		"larger":               func() error { return os.WriteFile(data, make([]byte, mi+512), 0o600) },
		"folder is a link":     func() error { return relink(filepath.Dir(data), root) },
		"pools are a link out": func() error { return relink(filepath.Join(own, "pools"), root) },
		"pools are a pipe": func() error {
			return errors.Join(os.RemoveAll(filepath.Join(own, "pools")), mkfifo(filepath.Join(own, "pools")))
		},
		"pools without end": func() (err error) {
			for i := range 200 {
				err = errors.Join(err, os.Mkdir(filepath.Join(own, "pools", fmt.Sprint(i)), 0o700))
			}
			return errors.Join(err, os.WriteFile(data, make([]byte, mi), 0o600))
		},
	} {
		if err := os.WriteFile(host, make([]byte, mi), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, c.Key()), make([]byte, mi), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(data)
		if err := attack(); err != nil {
			t.Fatal(err)
		}
		opened := opens(t, data)
		ended := make(chan error, 1)
		go func() {
			file, err := peer.Open("v", "first", mi)
			if err == nil {
				t.Errorf("%s: opened %s", name, file.Name())
			}
			ended <- err
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it hangs", name)
		}
		if name == "pipe" && opened() { // as it would a device
			t.Error("opened a pipe to look at it")
		}
		for i := range 200 {
			_ = os.Remove(filepath.Join(own, "pools", fmt.Sprint(i)))
		}
		for _, path := range []string{filepath.Dir(data), filepath.Join(own, "pools")} {
			if info, err := os.Lstat(path); err == nil && !info.IsDir() {
				if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Dir(data), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func relink(path, to string) error { return errors.Join(os.RemoveAll(path), os.Symlink(to, path)) }

// TestRemove can be repeated.
func TestRemove(t *testing.T) {
	s := open(t, t.TempDir())
	c := reserve(t, s, "v", mi, "a")
	expectRooms(t, s, 7, 6)
	if err := errors.Join(s.See(t.Context(), c), s.Remove(t.Context(), c), s.Remove(t.Context(), c)); err != nil {
		t.Error(err)
	}
	expectRooms(t, s, 8, 6)
}

func TestParsePools(t *testing.T) {
	for text, want := range map[string]string{"a=1Gi": "", "": "no pools", "a=0": "positive", "a=x": "positive", "a/b=1": "expected a name", "..=1": "expected a name"} {
		sizes := map[string]string{}
		if name, size, ok := strings.Cut(text, "="); ok {
			sizes[name] = size
		}
		if _, err := ParsePools(sizes); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %q", text, err, want)
		}
	}
}

// opens returns whether a file was opened since.
func opens(t *testing.T, path string) func() bool {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(watch) })
	_, _ = unix.InotifyAddWatch(watch, path, unix.IN_OPEN) // some are behind links
	return func() bool {
		n, _ := unix.Read(watch, make([]byte, 4096))
		return n > 0
	}
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
