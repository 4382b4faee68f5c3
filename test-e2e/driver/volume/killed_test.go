package volume

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"

	"capacityv2.internal/test-e2e/driver/pool"
)

// steps are what a driver changes on the machine. It can be killed before each of them, as
// kill -9 does.
type steps struct {
	names  []string
	killAt int
}

type killed struct{}

func (s *steps) step(name string) {
	s.names = append(s.names, name)
	if len(s.names) == s.killAt {
		panic(killed{})
	}
}

// run returns whether it was killed.
func (s *steps) run(do func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died = r.(killed); !died {
				panic(r)
			}
		}
		s.killAt = 0
	}()
	do()
	return false
}

// steppingMounter and steppingExec are real, and tell what they do.
type steppingMounter struct {
	mount.Interface
	*steps
}

func (m steppingMounter) Mount(source, target, fsType string, options []string) error {
	m.step("mount")
	return m.Interface.Mount(source, target, fsType, options)
}

func (m steppingMounter) Unmount(target string) error {
	m.step("unmount")
	return m.Interface.Unmount(target)
}

type steppingExec struct {
	exec.Interface
	*steps
}

func (e steppingExec) Command(program string, arguments ...string) exec.Cmd {
	e.step(program + " " + arguments[0])
	return e.Interface.Command(program, arguments...)
}

// newMachine returns a cluster with real mounts, and images on real loop devices.
func newMachine(t *testing.T) (*cluster, *steps) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount and use loop devices")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("this machine has no loop devices: %v", err)
	}
	s := &steps{}
	c := newCluster(t, map[string]int64{"n": 1, "m": 1})
	c.backing = Images{Exec: steppingExec{exec.New(), s}}
	for node := range c.mounters {
		c.mounters[node] = steppingMounter{mount.New(""), s}
	}
	// Nodes have mounts of their own.
	c.paths = map[string]string{"n": filepath.Join(c.root, "stage-n"), "m": filepath.Join(c.root, "stage-m")}
	t.Cleanup(func() {
		for _, path := range c.paths {
			for _, target := range []string{filepath.Join(path, device), path} {
				if mounted, err := isMounted(mount.New(""), target); err == nil && mounted {
					t.Errorf("%s is still mounted", target)
					if err := mount.New("").Unmount(target); err != nil {
						t.Error(err)
					}
				}
			}
		}
		for _, file := range c.images() {
			if devices := c.attached(file); len(devices) > 0 {
				t.Errorf("%s is still attached to %v", file, devices)
				c.losetup(append([]string{"--detach"}, devices...)...)
			}
		}
	})
	return c, s
}

func (c *cluster) losetup(arguments ...string) []string {
	c.Helper()
	out, err := exec.New().Command("losetup", arguments...).CombinedOutput()
	if err != nil {
		c.Errorf("losetup %v: %v: %s", arguments, err, out)
	}
	return strings.Fields(string(out))
}

func (c *cluster) attached(file string) []string {
	c.Helper()
	return c.losetup("--associated", file, "--noheadings", "--output", "NAME")
}

func (c *cluster) images() []string {
	c.Helper()
	files, err := filepath.Glob(filepath.Join(c.root, "pools/*/p/volumes/*/image"))
	if err != nil {
		c.Error(err)
	}
	return files
}

// fsck compares the books with the disks, the mounts and the loop devices. After a kill and a
// restart, a removal may wait for its call; strict is after that.
func (c *cluster) fsck(when string, strict bool) {
	c.Helper()
	paths := []string{}
	for node := range c.sizes {
		volumes, err := c.books(node).Volumes()
		if err != nil {
			c.Errorf("%s: %v", when, err)
		}
		for _, v := range volumes {
			paths = append(paths, v.Path)
			if !strict {
				paths = append(paths, v.Path+"@@removed")
			}
			c.check(when, node, v, strict)
		}
	}
	found, err := filepath.Glob(filepath.Join(c.root, "pools/*/p/volumes/*"))
	if err != nil {
		c.Errorf("%s: %v", when, err)
	}
	for _, path := range found {
		if !slices.Contains(paths, path) {
			c.Errorf("%s: %s is in no books", when, path)
		}
	}
}

func (c *cluster) check(when, node string, v pool.Volume, strict bool) {
	c.Helper()
	if v.State == pool.Creating || v.State == pool.Rebuilding {
		c.Errorf("%s: node %s has a volume that is %s", when, node, v.State)
	}
	info, err := os.Stat(image(v))
	switch {
	case errors.Is(err, os.ErrNotExist) && !strict:
		return // It is being removed.
	case err != nil:
		c.Errorf("%s: node %s: %v", when, node, err)
		return
	case info.Size() != v.CapacityBytes || info.Sys().(*syscall.Stat_t).Blocks*512 < v.CapacityBytes:
		c.Errorf("%s: node %s has %d bytes, and %d allocated; expected %d", when, node, info.Size(), info.Sys().(*syscall.Stat_t).Blocks*512, v.CapacityBytes)
	}
	mounted, err := isMounted(mount.New(""), staged(v, c.paths[node]))
	if err != nil || mounted != (v.StagedAt != "") {
		c.Errorf("%s: node %s: staged at %q, mounted: %t, %v", when, node, v.StagedAt, mounted, err)
	}
	if devices := c.attached(image(v)); (len(devices) == 1) != mounted {
		c.Errorf("%s: node %s: mounted: %t, attached to %v", when, node, mounted, devices)
	}
}

// books opens those of a node, without a driver.
func (c *cluster) books(node string) *pool.Store {
	c.Helper()
	store, err := pool.Create(c.root, node, nil)
	if err != nil {
		c.Fatal(err)
	}
	return store
}

// TestKilled kills the driver at each step of each call. After a restart, books, disks, mounts
// and loop devices agree, and the call can be repeated.
func TestKilled(t *testing.T) {
	const size = 8 << 20
	id := pool.ID("v", "n")
	record := func(state pool.State) []string {
		return []string{"write record " + string(state), "rename record " + string(state), "renamed record " + string(state)}
	}
	discard := []string{"rename data", "remove data", "remove record", "removed record"}
	create := func(block bool) func(*cluster, *Manager) error {
		return func(c *cluster, n *Manager) error {
			_, err := n.Create(c.Context(), pool.Volume{Name: "v", CapacityBytes: size, Block: block}, 0)
			return err
		}
	}
	stage := func(c *cluster, m *Manager) error {
		// Not Acquire, which goes on in the background.
		if err := m.copyHere(c.Context(), id); err != nil {
			return err
		}
		return m.serve(c.Context(), id, c.paths[m.Store.Node], false, nil)
	}
	unstage := func(c *cluster, m *Manager) error { return m.Release(c.Context(), id, c.paths[m.Store.Node]) }
	remove := func(c *cluster, m *Manager) error { return m.Delete(c.Context(), id) }
	for name, test := range map[string]struct {
		block  bool
		before []func(*cluster, *Manager) error // on node n
		on     string
		call   func(*cluster, *Manager) error
		steps  [][]string
	}{
		"create": {on: "n", call: create(false), steps: [][]string{
			record(pool.Creating), {"make data", "mke2fs -q", "made data"}, record(pool.Ready)}},
		"create a device": {block: true, on: "n", call: create(true), steps: [][]string{
			record(pool.Creating), {"make data", "made data"}, record(pool.Ready)}},
		"stage": {on: "n", before: []func(*cluster, *Manager) error{create(false)}, call: stage, steps: [][]string{
			record(pool.Ready), {"losetup --find", "mount", "losetup --associated", "losetup --detach", "losetup --associated"}, record(pool.Ready)}},
		"stage a device": {block: true, on: "n", before: []func(*cluster, *Manager) error{create(true)}, call: stage, steps: [][]string{
			record(pool.Ready), {"losetup --find", "mount"}, record(pool.Ready)}},
		"unstage": {on: "n", before: []func(*cluster, *Manager) error{create(false), stage}, call: unstage, steps: [][]string{
			{"unmount", "losetup --associated"}, record(pool.Ready)}},
		"unstage a device": {block: true, on: "n", before: []func(*cluster, *Manager) error{create(true), stage}, call: unstage, steps: [][]string{
			{"unmount", "losetup --associated", "losetup --detach", "losetup --associated"}, record(pool.Ready)}},
		"delete": {on: "n", before: []func(*cluster, *Manager) error{create(false)}, call: remove, steps: [][]string{
			record(pool.Ready), discard}},
		"rebuild": {on: "m", before: []func(*cluster, *Manager) error{create(false)}, call: stage, steps: [][]string{
			record(pool.Rebuilding), record(pool.Ready), // fenced on n
			{"copy data", "copied data"}, record(pool.Rebuilt),
			record(pool.Ready), // fenced on n
			record(pool.Ready), {"losetup --find", "mount", "losetup --associated", "losetup --detach", "losetup --associated"},
			record(pool.Ready)}},
	} {
		t.Run(name, func(t *testing.T) {
			for step := 0; ; step++ {
				c, s := newMachine(t)
				n := c.start("n")
				for _, call := range test.before {
					c.expect(call(c, n), codes.OK, "")
				}
				c.release(id)
				called := c.start(test.on)
				called.Store.Fault = s.step
				s.names, s.killAt = nil, step
				died := s.run(func() { c.expect(test.call(c, called), codes.OK, "") })
				if want := slices.Concat(test.steps...); step == 0 && !slices.Equal(s.names, want) {
					t.Fatalf("steps:\n%q\nexpected:\n%q", s.names, want)
				}
				when := "completed"
				if died {
					when = "killed before: " + s.names[len(s.names)-1]
					c.start("n")
					called = c.start(test.on)
					c.fsck(when+", restarted", false)
				}
				c.expect(test.call(c, called), codes.OK, "")
				c.start("n").GiveUp(t.Context())
				c.fsck(when+", repeated", true)
				for _, node := range []string{"n", "m"} {
					m := c.start(node)
					c.expect(unstage(c, m), codes.OK, "")
					if _, err := m.Get(id); err == nil {
						c.expect(remove(c, m), codes.OK, "")
					}
				}
				if left := c.images(); len(left) > 0 {
					t.Errorf("%s: left: %v", when, left)
				}
				if step > 0 && !died {
					if step != len(slices.Concat(test.steps...))+1 {
						t.Errorf("%d steps were killed", step-1)
					}
					return
				}
			}
		})
	}
}

// TestMountedElsewhere unstages a volume whose file system is in use in another mount
// namespace, such as that of a pod with a hostPath. It may be written, so no node copies it.
func TestMountedElsewhere(t *testing.T) {
	c, _ := newMachine(t)
	n := c.start("n")
	v, err := n.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: 8 << 20}, 0)
	c.expect(err, codes.OK, "")
	path := c.paths["n"]
	c.expect(n.Acquire(t.Context(), v.ID, path), codes.OK, "")
	elsewhere := exec.New().Command("unshare", "--mount", "--propagation=private", "sh", "-c", "echo; read line")
	in, out := io.Pipe()
	elsewhere.SetStdin(in)
	started, err := elsewhere.StdoutPipe()
	if err == nil {
		err = elsewhere.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := started.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	c.expect(n.Release(t.Context(), v.ID, path), codes.Internal, "in use")
	if v, err := n.Get(v.ID); err != nil || v.StagedAt != path {
		t.Errorf("staged at %q, %v", v.StagedAt, err)
	}
	if err := errors.Join(out.Close(), elsewhere.Wait()); err != nil {
		t.Log(err) // read has got no line
	}
	c.expect(n.Release(t.Context(), v.ID, path), codes.OK, "")
}

// TestOpenForAMoment unstages a volume whose device something else closes only afterwards.
func TestOpenForAMoment(t *testing.T) {
	c, _ := newMachine(t)
	n := c.start("n")
	v, err := n.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: 8 << 20, Block: true}, 0)
	c.expect(err, codes.OK, "")
	path := c.paths["n"]
	c.expect(n.Acquire(t.Context(), v.ID, path), codes.OK, "")
	v, err = n.Get(v.ID)
	c.expect(err, codes.OK, "")
	devices, err := Images{Exec: exec.New()}.attached(v)
	if err != nil || len(devices) != 1 {
		t.Fatalf("devices %q, %v", devices, err)
	}
	opened, err := os.Open(devices[0])
	if err != nil {
		t.Fatal(err)
	}
	n.Backing = closes{n.Backing, opened}
	c.expect(n.Release(t.Context(), v.ID, path), codes.OK, "")
}

// closes closes a file a little after a volume begins to be detached.
type closes struct {
	Backing
	file *os.File
}

func (b closes) Detach(v pool.Volume) (bool, error) {
	time.AfterFunc(100*time.Millisecond, func() { _ = b.file.Close() })
	return b.Backing.Detach(v)
}

// TestImageGone has a node whose folder of a volume is there, and the file in it is not. No
// empty volume is made of that.
func TestImageGone(t *testing.T) {
	c, _ := newMachine(t)
	n, m := c.start("n"), c.start("m")
	v, err := n.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: 8 << 20, Block: true}, 0)
	c.expect(err, codes.OK, "")
	if err := os.Remove(image(v)); err != nil {
		t.Fatal(err)
	}
	n.Sweep(t.Context())
	if len(c.shown) > 0 {
		t.Error("shown")
	}
	c.expect(m.Acquire(t.Context(), v.ID, c.paths["m"]), codes.Unavailable, "cannot be read")
	c.expect(m.Release(t.Context(), v.ID, c.paths["m"]), codes.OK, "")
}

// TestDeviceTakenOver unstages a device whose node was not off when another one took it over. The
// file is removed; its loop device must not keep the room on the disk.
func TestDeviceTakenOver(t *testing.T) {
	c, _ := newMachine(t)
	n, m := c.start("n"), c.start("m")
	v, err := n.Create(t.Context(), pool.Volume{Name: "v", CapacityBytes: 8 << 20, Block: true}, 0)
	c.expect(err, codes.OK, "")
	c.expect(n.Acquire(t.Context(), v.ID, c.paths["n"]), codes.OK, "")
	devices := c.attached(image(v))
	c.release(v.ID)
	c.off = []string{"n"}
	c.expect(m.Acquire(t.Context(), v.ID, c.paths["m"]), codes.OK, "")
	for range 2 {
		c.expect(n.Release(t.Context(), v.ID, c.paths["n"]), codes.OK, "")
	}
	if files := c.losetup("--list", "--noheadings", "--output", "BACK-FILE"); slices.Contains(files, v.Path+"@@removed/image") {
		t.Errorf("%v is still attached to a file that was removed", devices)
		c.losetup(append([]string{"--detach"}, devices...)...)
	}
	c.expect(m.Release(t.Context(), v.ID, c.paths["m"]), codes.OK, "")
}
