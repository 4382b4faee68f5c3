// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capacityv2.internal/scripts/ground/files"
)

var date = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestTarballHasNothingOfTheMachine(t *testing.T) {
	var sums []string
	for i, perm := range []fs.FileMode{0o600, 0o777} {
		src, out := t.TempDir(), t.TempDir()
		content := files.Tree{}
		for _, n := range []string{"b", "a/c", "a/b"} {
			write(t, filepath.Join(src, n), n)
			at := filepath.Join(src, n)
			if err := os.Chmod(at, perm); err != nil {
				t.Fatal(err)
			}
			when := time.Now().Add(time.Duration(i) * time.Hour)
			if err := os.Chtimes(at, when, when); err != nil {
				t.Fatal(err)
			}
		}
		if err := content.AddFolder("kubernetes/x", src); err != nil {
			t.Fatal(err)
		}
		if err := content.AddFile("kubernetes/program", filepath.Join(src, "b"), files.Program); err != nil {
			t.Fatal(err)
		}
		// More than one gzip block.
		content.AddBytes("kubernetes/large", []byte(strings.Repeat("0123456789", gzipBlock/4)))
		if err := writeTarGz(t.Context(), content, filepath.Join(out, "x.tar.gz"), date); err != nil {
			t.Fatal(err)
		}
		s, err := sum(filepath.Join(out, "x.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, s)
		want := "kubernetes/ 755, kubernetes/large 644, kubernetes/program 755, kubernetes/x/ 755, kubernetes/x/a/ 755, kubernetes/x/a/b 644, kubernetes/x/a/c 644, kubernetes/x/b 644"
		if got := listing(t, filepath.Join(out, "x.tar.gz")); got != want {
			t.Errorf("members %s,\nwant %s", got, want)
		}
	}
	if sums[0] != sums[1] {
		t.Error("modes or times of the files change the tarball")
	}
}

// listing returns names and modes, and checks owner and date.
func listing(t *testing.T, path string) string {
	t.Helper()
	var out []string
	err := readTarGz(path, func(h *tar.Header, _ io.Reader) error {
		if h.Typeflag != tar.TypeXGlobalHeader && (h.Uid != 0 || h.Gid != 0 || h.Uname != h.Gname || h.Uname != "" && h.Uname != "root" || !h.ModTime.Equal(date)) {
			t.Errorf("%s: owner %d:%d %s:%s, date %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		out = append(out, fmt.Sprintf("%s %o", h.Name, h.Mode))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, ", ")
}
