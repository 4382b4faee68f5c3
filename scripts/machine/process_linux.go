package machine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// marked returns the living processes with the mark.
func marked(mark string) []process {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	var all []process
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), MarkVariable+"="+mark) {
			continue // another one, or it has ended
		}
		var p process
		if _, err := fmt.Sscanf(file, "/proc/%d/", &p.pid); err == nil {
			_, p.parent = stat(p.pid)
			all = append(all, p)
		}
	}
	return all
}

// holds reports whether the process has files and ports: a zombie has none.
func (p process) holds() bool {
	state, _ := stat(p.pid)
	return state != "" && state != "Z" && state != "X"
}

// stat returns the state of a process, "" where there is none, and the number of its parent.
func stat(pid int) (state string, parent int) {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name, in parentheses, may hold some itself, and spaces.
	_, _ = fmt.Sscan(string(content[bytes.LastIndexByte(content, ')')+1:]), &state, &parent)
	return state, parent
}
