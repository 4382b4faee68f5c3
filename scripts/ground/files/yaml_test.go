// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadYAML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.yaml")
	var got struct{ Name string }
	if err := ReadYAML(path, &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("name: a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ReadYAML(path, &got); err != nil || got.Name != "a" {
		t.Errorf("read %q, %v", got.Name, err)
	}
	if err := os.WriteFile(path, []byte("name: a\nnane: b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ReadYAML(path, &got); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nane") {
		t.Errorf("a field that is not known: %v", err)
	}
}
