package volume

import (
	"os"
	"testing"

	"google.golang.org/grpc/codes"

	"k8s.io/mount-utils"

	"capacityv2.internal/test-e2e/driver/pool"
)

// TestRestartOfNode checks that a node that was restarted does not keep a volume.
func TestRestartOfNode(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	v := c.volume(n)
	if err := n.Acquire(t.Context(), v.ID, c.path); err != nil {
		t.Fatal(err)
	}
	n = c.start("n") // of the driver only
	if got, err := n.Get(v.ID); err != nil || got.StagedAt != c.path {
		t.Errorf("after the driver: %v, %v", got, err)
	}
	c.mounters["n"] = mount.NewFakeMounter(nil)
	n = c.start("n")
	if got, err := n.Get(v.ID); err != nil || got.StagedAt != "" {
		t.Errorf("after the node: %v, %v", got, err)
	}
}

// TestRestartWithBrokenVolume checks that one volume that cannot be detached keeps no driver from
// starting. When it can be, it does not stay staged, although no call comes.
func TestRestartWithBrokenVolume(t *testing.T) {
	c := newCluster(t, map[string]int64{"n": 10})
	n := c.start("n")
	v := c.volume(n)
	c.expect(n.Acquire(t.Context(), v.ID, c.path), codes.OK, "")
	c.mounters["n"], c.backing = mount.NewFakeMounter(nil), inUse{}
	n = c.start("n")
	if got, err := n.Get(v.ID); err != nil || got.StagedAt != c.path {
		t.Errorf("after a restart: %v, %v", got, err)
	}
	n.Sweep(t.Context())
	if got, err := n.Get(v.ID); err != nil || got.StagedAt != c.path {
		t.Errorf("while it is in use: %v, %v", got, err)
	}
	n.Backing = Folders{}
	n.Sweep(t.Context())
	if got, err := n.Get(v.ID); err != nil || got.StagedAt != "" {
		t.Errorf("when it is not in use any more: %v, %v", got, err)
	}
}

type inUse struct{ Folders }

func (inUse) Detach(pool.Volume) (bool, error) { return true, nil }

// TestKilledWhileDeleted kills the driver of a node that copies a volume after it was deleted elsewhere. The
// data is in no books then. The next driver removes it, and nothing else.
func TestKilledWhileDeleted(t *testing.T) {
	s := newSlow(t)
	kept, err := s.m.Create(t.Context(), pool.Volume{Name: "kept", CapacityBytes: gi}, 0)
	s.expect(err, codes.OK, "")
	s.m.Store.Fault = func(step string) {
		switch step {
		case "copy data":
			s.expect(s.m.Store.Discard(mustGet(s.cluster, s.m, s.id)), codes.OK, "") // as Delete on node n does first
		case "copied data":
			s.expect(s.n.Delete(t.Context(), s.id), codes.OK, "")
			panic(killed{})
		}
	}
	if died := (&steps{}).run(func() { _ = s.m.copyHere(t.Context(), s.id) }); !died {
		t.Error("the driver was not killed")
	}
	s.start("m")
	files, err := os.ReadDir(s.pool("m"))
	if err != nil || len(files) != 1 || files[0].Name() != kept.ID {
		t.Errorf("left: %v, %v; expected only %s", files, err, kept.ID)
	}
}
