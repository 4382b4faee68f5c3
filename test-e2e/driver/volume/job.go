package volume

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// job is a copy that goes on in the background, because it takes longer than a call.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done
}

// join does something for a volume in the background, or joins what is being done, and
// returns its error. If the call ends before, it goes on.
func (m *Manager) join(ctx context.Context, id string, do func(context.Context) error) error {
	m.mutex.Lock()
	j := m.jobs[id]
	if j == nil {
		background, cancel := context.WithCancel(context.WithoutCancel(ctx))
		j = &job{cancel: cancel, done: make(chan struct{})}
		m.jobs[id] = j
		go func() {
			j.err = do(background)
			m.mutex.Lock()
			defer m.mutex.Unlock()
			delete(m.jobs, id)
			cancel()
			close(j.done)
		}()
	}
	m.mutex.Unlock()
	if err := j.wait(ctx, id); err != nil {
		return err
	}
	return j.err
}

// end ends what is being done for a volume. If that takes longer than the call, the error
// is Aborted.
func (m *Manager) end(ctx context.Context, id string) error {
	m.mutex.Lock()
	j := m.jobs[id]
	m.mutex.Unlock()
	if j == nil {
		return nil
	}
	j.cancel()
	return j.wait(ctx, id)
}

func (m *Manager) isCopying(id string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.jobs[id] != nil
}

func (j *job) wait(ctx context.Context, id string) error {
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return status.Errorf(codes.Aborted, "volume %s is still being copied", id)
	}
}
