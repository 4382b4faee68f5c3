package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Meter counts the packages that a step compiles.
type Meter struct {
	mu          sync.Mutex
	done, total int
}

type meterKey struct{}

// MeterOf returns the meter of the step that ctx belongs to. Outside of steps, nobody reads it.
func MeterOf(ctx context.Context) *Meter {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		return m
	}
	return &Meter{}
}

// Add adds packages that are compiled, and packages that have to be.
func (m *Meter) Add(done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = m.done+done, m.total+total
}

// String says how much is compiled; "" if nothing has to be.
func (m *Meter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.total {
	case 0:
		return ""
	case m.done:
		return fmt.Sprintf("compiled %d of %d packages, linking", m.done, m.total)
	}
	return fmt.Sprintf("compiled %d of %d packages", m.done, m.total)
}

// bar draws it.
func (m *Meter) bar() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	const width = 30
	filled := width * m.done / max(m.total, 1)
	return "[" + strings.Repeat("=", filled) + strings.Repeat(" ", width-filled) + "]"
}

// A step that runs says so every minute: CI logs and people both take more silence for a hang. On a
// terminal, a bar is drawn again every second.
const (
	heartbeat = time.Minute
	redraw    = time.Second
)

// beat says what a step is doing until stop is closed.
func (r *Reporter) beat(m *Meter, log string, stop <-chan struct{}) {
	begin := time.Now()
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for said := begin; ; {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			words := m.String()
			took := now.Sub(begin).Round(time.Second)
			if words == "" {
				_, _ = r.Write(nil) // in the place of a bar
			}
			switch {
			case words != "" && r.terminal:
				r.draw(fmt.Sprintf("      %s %s (%s)", m.bar(), words, took))
			case now.Sub(said) < heartbeat:
			case words != "":
				r.Printf("      %s (%s)\n", words, took)
				said = now
			default:
				r.Printf("      still running after %s (log: %s)\n", took, log)
				said = now
			}
		}
	}
}

// clear takes away the line that the cursor is in.
const clear = "\r\033[K"

// draw replaces the line that it has drawn before. The next line that is printed takes it away.
func (r *Reporter) draw(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, clear+line)
	r.drawn = true
}

// isTerminal reports whether out is a screen that lines can be drawn on.
func isTerminal(out any) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
