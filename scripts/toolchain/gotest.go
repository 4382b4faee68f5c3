package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/run"
)

// resultLine is what a person and a CI look for in the output of go test.
var resultLine = regexp.MustCompile(`^(ok  \t|FAIL|PASS|panic: |\s*--- (FAIL|SKIP))`)

// Test runs go test in dir. Everything goes to log; out gets the closing line
// of each package and the names of failed tests, with -v also those of skipped ones.
func Test(ctx context.Context, dir string, env []string, log, out io.Writer, args ...string) error {
	return goTest(ctx, dir, env, log, out, Tags, args)
}

func goTest(ctx context.Context, dir string, env []string, log, out io.Writer, tags string, args []string) error {
	lines := &lineWriter{out: out, keep: resultLine}
	err := run.Cmd{
		Dir: dir, Env: append(Env(), env...), Log: io.MultiWriter(log, lines), Name: "go",
		Args: append([]string{"test", "-tags", tags}, args...),
	}.Run(ctx)
	lines.flush()
	return err
}

// lineWriter passes on the lines that match.
type lineWriter struct {
	out  io.Writer
	keep *regexp.Regexp
	part []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		i := bytes.IndexByte(w.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.line(w.part[:i+1])
		w.part = w.part[i+1:]
	}
}

func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		w.line(append(w.part, '\n'))
		w.part = nil
	}
}

func (w *lineWriter) line(l []byte) {
	if w.keep.Match(l) {
		_, _ = w.out.Write(l) // the log has it too
	}
}

// WriteOverlay writes to dir what the go command's flag -overlay takes: it reads the
// values of replace where it looks for the keys. It returns the path of the file.
func WriteOverlay(dir string, replace map[string]string) (string, error) {
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o644)
}
