// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestImages(t *testing.T) {
	program := filepath.Join(t.TempDir(), "e2e.test")
	const script = "#!/bin/sh\n[ \"$*\" = --list-images ] && printf '%s\\n' registry.example/e2e/agnhost:2 registry.example/csi/busybox:3 registry.example:5000/e2e/busybox:4\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Images(t.Context(), program, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"agnhost": {"registry.example/e2e/agnhost:2"}, "busybox": {"registry.example/csi/busybox:3", "registry.example:5000/e2e/busybox:4"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
