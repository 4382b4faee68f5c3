// Package progress tells a person what a long verb is doing: which step, of how
// many, how long it took, and where its log is.
package progress

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// heartbeat is how often a running step says that it is still running. CI logs
// and people both take a silent minute for a hang.
const heartbeat = 30 * time.Second

// Reporter prints the steps of one verb.
type Reporter struct {
	out    io.Writer
	verb   string
	logDir string
	total  int

	mu    sync.Mutex
	n     int
	start time.Time
}

// New returns a reporter for verb. Each step logs to a file of its own in
// logDir/verb. total is the number of steps; 0 means that it is not known.
func New(out io.Writer, verb, logDir string, total int) *Reporter {
	return &Reporter{out: out, verb: verb, logDir: filepath.Join(logDir, verb), total: total, start: time.Now()}
}

// Add announces n more steps, for a verb that runs another one's steps.
func (r *Reporter) Add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total += n
}

// Step is one running step.
type Step struct {
	// Log takes the output of the programs that the step runs.
	Log io.Writer
	// LogPath is the file behind Log.
	LogPath string

	r *Reporter
}

// Sayf prints one line under the step.
func (s *Step) Sayf(format string, args ...any) {
	s.r.printf("      "+format+"\n", args...)
	fmt.Fprintf(s.Log, "# "+format+"\n", args...)
}

var unsafeInName = regexp.MustCompile(`[^a-z0-9.+]+`)

// Step runs f as the next step. An error from f is returned with the path of
// the step's log, unless it is a refusal (see [Refusal]), which needs no log.
func (r *Reporter) Step(ctx context.Context, name string, f func(context.Context, *Step) error) error {
	r.mu.Lock()
	r.n++
	label := fmt.Sprintf("[%d/%d]", r.n, r.total)
	if r.total == 0 {
		label = fmt.Sprintf("[%d]", r.n)
	}
	file := fmt.Sprintf("%02d-%s.log", r.n, strings.Trim(unsafeInName.ReplaceAllString(strings.ToLower(name), "-"), "-"))
	r.mu.Unlock()

	if err := os.MkdirAll(r.logDir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(r.logDir, file)
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()

	r.printf("%s %s: %s\n", label, r.verb, name)
	begin := time.Now()
	stop := make(chan struct{})
	var beat sync.WaitGroup
	beat.Go(func() {
		t := time.NewTicker(heartbeat)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				r.printf("      still running after %s (log: %s)\n", time.Since(begin).Round(time.Second), path)
			}
		}
	})
	err = f(ctx, &Step{Log: log, LogPath: path, r: r})
	close(stop)
	beat.Wait()
	took := time.Since(begin).Round(100 * time.Millisecond)
	if err != nil {
		r.printf("      FAILED after %s\n", took)
		if IsRefusal(err) {
			return err
		}
		return fmt.Errorf("%s, step %q: %w\n  log: %s", r.verb, name, err, path)
	}
	r.printf("      done in %s\n", took)
	return nil
}

// Done prints the closing line of the verb.
func (r *Reporter) Done() {
	r.printf("%s: done in %s\n", r.verb, time.Since(r.start).Round(100*time.Millisecond))
}

// Printf prints a line that belongs to no step.
func (r *Reporter) Printf(format string, args ...any) { r.printf(format, args...) }

func (r *Reporter) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}
