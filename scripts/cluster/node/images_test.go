// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"capacityv2.internal/scripts/ground/testtree"
)

func TestPauseImage(t *testing.T) {
	tree := t.TempDir()
	dir := filepath.Join(tree, "build", "pause")
	testtree.Write(t, dir, map[string]string{"Makefile": "IMAGE = x\nTAG ?= 3.10.2\nREV = 1\n", "linux/pause.c": "int main() { return 0; }\n"})
	out := t.TempDir()
	reference, tarballs, err := WriteImages(t.Context(), tree, []Image{{Reference: "other:1", Links: map[string]string{"bin/sh": "busybox"}}}, out, t.Output())
	if err != nil || reference != "registry.k8s.io/pause:3.10.2" || len(tarballs) != 2 {
		t.Fatalf("%q, %v, %v", reference, tarballs, err)
	}
	image, err := tarball.ImageFromPath(tarballs[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := image.ConfigFile(); err != nil || file.Config.User != "65535:65535" || !slices.Equal(file.Config.Entrypoint, []string{"/pause"}) {
		t.Errorf("%+v, %v", file, err)
	}
	other, err := tarball.ImageFromPath(tarballs[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	links, in := map[string]string{}, tar.NewReader(mutate.Extract(other))
	for h, err := in.Next(); err == nil; h, err = in.Next() {
		links[h.Name] = h.Linkname
	}
	if links["bin/sh"] != "busybox" {
		t.Errorf("links %v", links)
	}
	testtree.Write(t, dir, map[string]string{"Makefile": "VERSION = 3\n"})
	if _, _, err := WriteImages(t.Context(), tree, nil, out, t.Output()); err == nil {
		t.Error("a Makefile without a tag passed")
	}
}
