package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestImageIsDeterministic(t *testing.T) {
	files := []imageFile{{Name: "pause", Content: []byte("program"), Mode: 0o755}}
	var contents [][]byte
	for range 2 {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := writeImage(out, "registry.example/pause:1", []string{"/pause"}, nil, "65535:65535", files); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, b)
	}
	if !bytes.Equal(contents[0], contents[1]) {
		t.Error("the same input gave other bytes")
	}

	var index struct {
		Manifests []struct {
			MediaType   string            `json:"mediaType"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(tarFile(t, contents[0], "index.json"), &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "registry.example/pause:1" {
		t.Errorf("index %+v, want one manifest with its name", index)
	}
	if got := index.Manifests[0].MediaType; got != "application/vnd.oci.image.manifest.v1+json" {
		t.Errorf("media type %s", got)
	}
}

func tarFile(t *testing.T, content []byte, name string) []byte {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Name == name {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
}

func TestPauseImage(t *testing.T) {
	tree := t.TempDir()
	dir := filepath.Join(tree, "build", "pause")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("IMAGE = x\nTAG ?= 3.10.2\nREV = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := PauseImage(tree); err != nil || got != "registry.k8s.io/pause:3.10.2" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("VERSION = 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := PauseImage(tree); err == nil {
		t.Error("a Makefile without a tag passed")
	}
}
