// SPDX-License-Identifier: Apache-2.0

// Package machine is what the tooling asks of this machine and changes on it: control
// groups, networks and processes. What it makes has a name by which it is found again.
package machine

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// MissingFolders returns the folders that have to be made so that dir exists, outermost first.
func MissingFolders(dir string) []string {
	var missing []string
	for d := dir; !Exists(d); d = filepath.Dir(d) {
		missing = append([]string{d}, missing...)
	}
	return missing
}

// Exists reports whether there is something at the path.
func Exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// WaitUntil polls f and returns whether it became true in time.
func WaitUntil(ctx context.Context, d time.Duration, f func() bool) bool {
	deadline := time.Now().Add(d)
	for !f() {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return f()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return true
}
