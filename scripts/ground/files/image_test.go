// SPDX-License-Identifier: Apache-2.0

package files

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// writeImage writes an image with a program and a link to it into a file.
func writeImage(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "program"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := Tree{}
	if err := tree.AddFile("bin/program", filepath.Join(dir, "program"), Program); err != nil {
		t.Fatal(err)
	}
	tree.AddLink("bin/other", "program")
	f, err := os.Create(filepath.Join(dir, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image := Image{Reference: "registry.example/program:1", OS: "linux", Arch: "arm64", Created: time.Unix(0, 0).UTC(), Files: tree,
		Config: v1.Config{Entrypoint: []string{"/bin/program"}, Cmd: []string{"--help"}, User: "0:0"}}
	if _, err := image.Write(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func TestImageIsDeterministic(t *testing.T) {
	var contents [][]byte
	for _, program := range []string{"one", "one", "two"} {
		b, err := os.ReadFile(writeImage(t, program))
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, b)
	}
	if !bytes.Equal(contents[0], contents[1]) || bytes.Equal(contents[0], contents[2]) {
		t.Error("the same input gave other bytes, or another input the same")
	}
}

func TestImage(t *testing.T) {
	img, err := tarball.ImageFromPath(writeImage(t, "x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/bin/program" || config.Config.Cmd[0] != "--help" {
		t.Errorf("configuration %+v", config)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	got := map[string]*tar.Header{}
	if err := EachMember(content, func(h *tar.Header, _ io.Reader) error { got[h.Name] = h; return nil }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		mode int64
		link string
	}{"tmp/": {0o1777, ""}, "bin/": {0o755, ""}, "bin/program": {0o755, ""}, "bin/other": {0o777, "program"}} {
		if h := got[name]; h == nil || h.Mode != want.mode || h.Linkname != want.link || h.Uid != 0 {
			t.Errorf("%s: %+v, want mode %o and link %q", name, h, want.mode, want.link)
		}
	}
}
