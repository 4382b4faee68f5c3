package history

import (
	"slices"
	"sync"
	"time"
)

// Recorder collects operations. A nil one does nothing.
type Recorder struct {
	mutex      sync.Mutex
	operations []Operation
}

// Begin notes when a call begins, and returns what notes its end. A call that is still going
// on is not in the record.
func (r *Recorder) Begin(o Operation) (end func(result Result, pool string)) {
	if r == nil {
		return func(Result, string) {}
	}
	o.Call = time.Now()
	return func(result Result, pool string) {
		o.Return, o.Result, o.Pool = time.Now(), result, pool
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.operations = append(r.operations, o)
	}
}

// Operations returns what has ended until now.
func (r *Recorder) Operations() []Operation {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.operations)
}
