// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "etcd")
	if err := os.WriteFile(path, []byte("a program of before"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "server"), []byte("new"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, time := range []string{"first", "second"} {
		if err := link(path, "server"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
			t.Errorf("%s time: %q, %v", time, got, err)
		}
	}
}
