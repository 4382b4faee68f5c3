package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Kind is what was asked for.
type Kind string

const (
	// Start is a driver that begins. Pools and Volumes are all that it has.
	Start Kind = "start"
	// Create takes room for a volume: CreateVolume, or a copy on another node.
	Create Kind = "create"
	// Delete gives it back.
	Delete Kind = "delete"
)

// Result is how it ended.
type Result string

const (
	OK Result = "ok"
	// Refused is a volume for which there is no room.
	Refused Result = "refused"
	// Unknown is a call that may have done what was asked, or not.
	Unknown Result = "unknown"
)

// Place is where a volume is.
type Place struct {
	Pool  string `json:"pool"`
	Bytes int64  `json:"bytes"`
}

// Operation is one call.
type Operation struct {
	Node   string `json:"node"`
	Kind   Kind   `json:"kind"`
	Volume string `json:"volume,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	// Allowed are the pools that a volume may be in. Empty: all.
	Allowed []string `json:"allowed,omitempty"`
	// Call and Return are when it began and ended. Return is zero if nobody saw the end.
	Call   time.Time `json:"call"`
	Return time.Time `json:"return,omitzero"`
	// At is when it took effect in between, if the driver says so. Zero: not known.
	At     time.Time `json:"at,omitzero"`
	Result Result    `json:"result"`
	// Pool is where the volume was put. Empty: not known.
	Pool string `json:"pool,omitempty"`
	// Pools are the sizes of pools, Volumes what is in them, for Start.
	Pools   map[string]int64 `json:"pools,omitempty"`
	Volumes map[string]Place `json:"volumes,omitempty"`
}

// String says what was asked for, and what came out.
func (o Operation) String() string {
	result := string(o.Result)
	if o.Result == OK && o.Pool != "" {
		result = "pool " + o.Pool
	}
	switch o.Kind {
	case Start:
		text := fmt.Sprintf("start with %d pools and %d volumes", len(o.Pools), len(o.Volumes))
		if has := begun(o); has.overfull() {
			text += ", more than fit: " + has.String()
		}
		return text
	case Delete:
		return fmt.Sprintf("delete %s: %s", o.Volume, result)
	}
	return fmt.Sprintf("create %s of %s: %s", o.Volume, size(o.Bytes), result)
}

// size is a number of bytes, in GiB or MiB where that is a whole number.
func size(bytes int64) string {
	for _, unit := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}} {
		if bytes>>unit.shift<<unit.shift == bytes {
			return fmt.Sprintf("%d %s", bytes>>unit.shift, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Write writes operations as lines of JSON.
func Write(w io.Writer, operations []Operation) error {
	encoder := json.NewEncoder(w)
	for _, o := range operations {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what [Write] has written.
func Read(r io.Reader) ([]Operation, error) {
	var operations []Operation
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var o Operation
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		operations = append(operations, o)
	}
	return operations, lines.Err()
}
