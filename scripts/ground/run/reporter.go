// SPDX-License-Identifier: Apache-2.0

// Package run is how a verb runs. It tells a person which step, of how many, how long it took, and where its log is; it
// starts programs, whose output goes to that log; and it refuses bad input.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Reporter prints the steps of one verb.
type Reporter struct {
	out    io.Writer
	verb   string
	logDir string
	start  time.Time

	mu    sync.Mutex
	atEnd string
}

// NewReporter returns a reporter for verb. Each step logs to a file of its own in
// logDir/verb.
func NewReporter(out io.Writer, verb, logDir string) *Reporter {
	return &Reporter{out: out, verb: verb, logDir: filepath.Join(logDir, verb), start: time.Now()}
}

// Task is a step that has not begun.
type Task struct {
	Name string
	Do   func(context.Context, *Step) error
	// Independent is whether the next tasks run, too, if it fails.
	Independent bool
}

// Run runs tasks one after the other until one fails. They are all that the verb
// does, so that their number is known from the first one on.
func (r *Reporter) Run(ctx context.Context, tasks ...Task) error {
	var failed []error
	for i, t := range tasks {
		err := r.run(ctx, t, i+1, len(tasks))
		failed = append(failed, err)
		if err != nil && (!t.Independent || ctx.Err() != nil) {
			break
		}
	}
	return errors.Join(failed...)
}

// Step is one running step.
type Step struct {
	// Log takes the output of the programs that the step runs.
	Log io.Writer
	// LogPath is the file behind Log.
	LogPath string
	// Out takes lines for people.
	Out io.Writer

	r *Reporter
}

// Sayf prints one line under the step.
func (s *Step) Sayf(format string, args ...any) {
	s.r.Printf("      "+format+"\n", args...)
	fmt.Fprintf(s.Log, "# "+format+"\n", args...)
}

// AtEnd adds to what the verb prints when it has done all.
func (s *Step) AtEnd(format string, args ...any) { s.r.atEnd += fmt.Sprintf(format, args...) }

// WithLog does something with a log beside that of the step, for work that runs side by side with
// other work of the same step. An error says what it is of, and names the log.
func (s *Step) WithLog(name, of string, do func(log io.Writer) error) error {
	log, err := os.Create(strings.TrimSuffix(s.LogPath, ".log") + "-" + name + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(s.Log, "# %s: see %s\n", of, log.Name())
	if err := do(log); err != nil {
		return fmt.Errorf("%s: %w (log: %s)", of, err, log.Name())
	}
	return nil
}

var unsafeInName = regexp.MustCompile(`[^a-z0-9.+]+`)

// run runs t as step n of total. Its error is returned with the path of the step's
// log, unless it is a refusal (see [Refuse]), which needs no log.
func (r *Reporter) run(ctx context.Context, t Task, n, total int) error {
	file := fmt.Sprintf("%02d-%s.log", n, strings.Trim(unsafeInName.ReplaceAllString(strings.ToLower(t.Name), "-"), "-"))
	if err := os.MkdirAll(r.logDir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(r.logDir, file)
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()

	r.Printf("[%d/%d] %s: %s\n", n, total, r.verb, t.Name)
	begin := time.Now()
	stop := make(chan struct{})
	var beat sync.WaitGroup
	beat.Go(func() { r.beat(path, stop) })
	err = t.Do(ctx, &Step{Log: log, LogPath: path, Out: r, r: r})
	close(stop)
	beat.Wait()
	took := time.Since(begin).Round(100 * time.Millisecond)
	if err != nil {
		r.Printf("      FAILED after %s\n", took)
		if IsRefusal(err) {
			return err
		}
		return fmt.Errorf("%s, step %q: %w\n  log: %s", r.verb, t.Name, err, path)
	}
	r.Printf("      done in %s\n", took)
	return nil
}

// Done prints what steps have left for the end, and the closing line of the verb.
func (r *Reporter) Done() {
	r.Printf("%s%s: done in %s\n", r.atEnd, r.verb, time.Since(r.start).Round(100*time.Millisecond))
}

// Printf prints whole lines.
func (r *Reporter) Printf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

// Write prints whole lines.
func (r *Reporter) Write(lines []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(lines)
}

// beat says every minute that a step still runs, until stop is closed: CI logs and people both take more silence for a
// hang.
func (r *Reporter) beat(log string, stop <-chan struct{}) {
	begin := time.Now()
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			r.Printf("      still running after %s (log: %s)\n", now.Sub(begin).Round(time.Second), log)
		}
	}
}
