package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// State is how far a volume is on a node. All but Deleted and Moved take room.
type State string

const (
	// Creating is a volume that nobody has been told of. A restart removes it.
	Creating State = "creating"
	// Ready is a copy that can be served.
	Ready State = "ready"
	// Rebuilding is room for a copy that is not complete.
	Rebuilding State = "rebuilding"
	// Rebuilt is a complete copy that does not count yet: the volume is still
	// elsewhere.
	Rebuilt State = "rebuilt"
	// Behind is a copy that the volume keeps, and whose data is being replaced.
	Behind State = "behind"
	// Deleting is a copy whose data is being removed. A restart goes on with it.
	Deleting State = "deleting"
	// Leaving is the same for a volume that is elsewhere now.
	Leaving State = "leaving"
	// Deleted is a volume that was created elsewhere and deleted here. It is remembered
	// because the call may come again.
	Deleted State = "deleted"
	// Moved is a volume that was created here and is elsewhere. It is remembered
	// because it must not be taken for deleted.
	Moved State = "moved"
)

// Volume is what one node knows of a volume.
type Volume struct {
	ID string `json:"id"`
	// Name is that of the CreateVolume call.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Pool is the name of the pool that has the volume.
	Pool string `json:"pool"`
	// CapacityBytes is the size.
	CapacityBytes int64 `json:"capacityBytes"`
	// Pools are the names of the pools that are allowed. Empty: all.
	Pools []string `json:"pools,omitempty"`
	// Copies are the nodes that keep a copy, this one included.
	Copies []string `json:"copies,omitempty"`
	// Generation goes up when a copy is opened for writing. Of several copies, the one
	// with the highest generation has the data, and the others are behind.
	Generation int64 `json:"generation"`
	// FencedFor is the node that takes the volume over. A fenced copy is not served.
	FencedFor string `json:"fencedFor,omitempty"`
	// StagedAt is the path at which the volume is staged on this node, or empty.
	StagedAt string `json:"stagedAt,omitempty"`
}

// HasData tells whether a copy is complete and counts. Its data may be old.
func (v *Volume) HasData() bool { return v.State == Ready }

// TakesRoom tells whether there is or may be data.
func (v *Volume) TakesRoom() bool { return v.State != Deleted && v.State != Moved }

// ID returns the ID of the volume with a name that a node creates. It is always the
// same, so that a call that is repeated finds the volume.
func ID(name, node string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16]) + "@" + node
}

// Creator returns the node that created a volume, or an empty string if the ID is not
// one of this driver.
func Creator(id string) string {
	sum, node, ok := strings.Cut(id, "@")
	if decoded, err := hex.DecodeString(sum); !ok || err != nil || len(decoded) != 16 || strings.ContainsAny(node, "/\x00") {
		return ""
	}
	return node
}
