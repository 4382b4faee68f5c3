package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// State is how far a volume is on a node. All of them take room.
type State string

const (
	// Creating is a volume that nobody has been told of. It is removed unless the call comes again.
	Creating State = "creating"
	// Ready is a copy that can be served.
	Ready State = "ready"
	// Rebuilding is room for a copy that is not complete.
	Rebuilding State = "rebuilding"
	// Rebuilt is a complete copy that does not count yet: the volume is still
	// elsewhere.
	Rebuilt State = "rebuilt"
)

// Deletion is in the place of the node for which a copy is fenced, when the volume is being
// deleted. No node has such a name.
const Deletion = "@deletion"

// Volume is what one node knows of a volume.
type Volume struct {
	ID string `json:"id"`
	// Name is that of the CreateVolume call, which is that of the PersistentVolume.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Pool is the name of the pool that has the volume.
	Pool string `json:"pool"`
	// Path is where its data is. It follows from node, pool and ID, and is in no record: another node may have
	// written that.
	Path string `json:"-"`
	// CapacityBytes is the size.
	CapacityBytes int64 `json:"capacityBytes"`
	// Block is whether the volume is a device, without a file system.
	Block bool `json:"block,omitempty"`
	// Pools are the names of the pools that are allowed. Empty: all.
	Pools []string `json:"pools,omitempty"`
	// Generation goes up when a copy is opened for writing. Of several copies, the one
	// with the highest generation has the data, and the others are old.
	Generation int64 `json:"generation"`
	// FencedFor is the node that takes the volume over, or Deletion. A fenced copy is not
	// served.
	FencedFor string `json:"fencedFor,omitempty"`
	// Contested is whether the copy was fenced, and has not been opened since then. Another node may be about to
	// open its own, so that has to be fenced first.
	Contested bool `json:"contested,omitempty"`
	// StagedAt is the path at which the volume is staged on this node, or empty.
	StagedAt string `json:"stagedAt,omitempty"`
	// Served is whether this copy was ever mounted. From then on, those of other nodes are given up.
	Served bool `json:"served,omitempty"`
}

// names are those of nodes and pools, and the parts of an ID. They are parts of paths.
var names = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]{0,251}[A-Za-z0-9])?$`)

func validName(name string) bool { return names.MatchString(name) && !strings.Contains(name, "..") }

func validID(id string) bool {
	name, node, ok := strings.Cut(id, "@")
	return validName(name) && (!ok || validName(node)) && len(id) <= 240 // with what is added, the name of a file
}

// check returns an error for a record that no driver writes.
func (v Volume) check(id string) error {
	if v.ID != id || !validID(id) || !validName(v.Pool) || v.CapacityBytes < 0 {
		return fmt.Errorf("volume %q in pool %q with %d bytes is none of the driver", v.ID, v.Pool, v.CapacityBytes)
	}
	return nil
}

// ID returns the ID of the volume with a name that a node creates. It is always the
// same, so that a call that is repeated finds the volume.
func ID(name, node string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16]) + "@" + node
}

// Maker returns the node that has created the volume with an ID, or nothing if it is not one of
// ID.
func Maker(id string) string {
	_, node, _ := strings.Cut(id, "@")
	if !validID(id) {
		return ""
	}
	return node
}
