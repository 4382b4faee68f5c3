package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// Results are the lines of runs, in the format that benchstat reads, by the name of
// the run.
type Results map[string][]byte

// runKey begins the line before the results of a run.
const runKey = "run: "

// ReadResults reads the file that Save wrote.
func ReadResults(path string) (Results, error) {
	text, err := os.ReadFile(path)
	results, name := Results{}, ""
	for line := range bytes.Lines(text) {
		if after, ok := strings.CutPrefix(string(line), runKey); ok {
			name = strings.TrimSpace(after)
			continue
		}
		results[name] = append(results[name], line...)
	}
	return results, err
}

// Save writes the results of runs, in their order.
func (r Results) Save(path string, runs []Run) error {
	var text []byte
	for _, run := range runs {
		if lines, ok := r[run.Name]; ok {
			text = append(text, runKey+run.Name+"\n"...)
			text = append(text, lines...)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
