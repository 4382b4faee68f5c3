// SPDX-License-Identifier: Apache-2.0

package run

import "strings"

// Lines is a writer that calls Each with each line, without its newline.
type Lines struct {
	Each func(line string)

	part string
}

func (w *Lines) Write(p []byte) (int, error) {
	w.part += string(p)
	for {
		line, rest, ok := strings.Cut(w.part, "\n")
		if !ok {
			return len(p), nil
		}
		w.part = rest
		w.Each(line)
	}
}

// Flush takes the end of what was written for a line.
func (w *Lines) Flush() {
	if w.part != "" {
		w.Each(w.part)
		w.part = ""
	}
}
