package stress

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// seed makes random decisions that depend on what they are about, but not on the
// order in which they are made.
type seed int64

// of returns a source for one thing.
func (s seed) of(format string, args ...any) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, format, args...)
	return rand.New(rand.NewPCG(uint64(s), hash.Sum64()))
}

// happens decides with a probability in percent.
func (s seed) happens(percent int, format string, args ...any) bool {
	return s.of(format, args...).IntN(100) < percent
}
