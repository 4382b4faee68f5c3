package bench

import (
	"bytes"
	"strings"
)

// Results are the lines of runs, in the format that benchstat reads, by the name of
// the run.
type Results map[string][]byte

// runKey begins the line before the results of a run.
const runKey = "run: "

// ReadResults reads what Text returned.
func ReadResults(text []byte) Results {
	results, name := Results{}, ""
	for line := range bytes.Lines(text) {
		if after, ok := strings.CutPrefix(string(line), runKey); ok {
			name = strings.TrimSpace(after)
			continue
		}
		results[name] = append(results[name], line...)
	}
	return results
}

// Text returns the results of runs, in their order.
func (r Results) Text(runs []Run) []byte {
	var text []byte
	for _, run := range runs {
		if lines, ok := r[run.Name]; ok {
			text = append(text, runKey+run.Name+"\n"...)
			text = append(text, lines...)
		}
	}
	return text
}
