// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// marked returns the living processes with the mark.
func marked(mark string) []process {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	var all []process
	for _, file := range files {
		if !slices.Contains(environment(filepath.Dir(file)), MarkVariable+"="+mark) {
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

// environment returns the variables of the process at dir in /proc, none where it has ended. One that
// begins with its program has no arguments yet, and then no variables, for a moment: it is asked again.
func environment(dir string) []string {
	began := false
	for range 1000 {
		variables, _ := os.ReadFile(filepath.Join(dir, "environ"))
		_, err := os.Readlink(filepath.Join(dir, "exe"))
		if len(variables) > 0 || began || err != nil { // no program: it ends, or is the kernel's
			return strings.Split(string(variables), "\x00")
		}
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		began = len(arguments) > 0
		time.Sleep(time.Millisecond)
	}
	return nil
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
