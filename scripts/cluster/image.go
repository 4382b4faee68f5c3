package cluster

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageFile is one file of an image.
type imageFile struct {
	// Name is the path in the image, without a leading slash. That of a folder ends with
	// one.
	Name    string
	Content []byte
	// Link is what a symbolic link points to; a link has no content.
	Link string
	Mode int64
}

// writeImage writes an image of one layer to the file out, as a tarball of an OCI
// layout, which `ctr images import` reads. The same input gives the same bytes.
func writeImage(out, reference string, entrypoint, command []string, user string, files []imageFile) error {
	raw, err := layerTar(files)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), layer)
	if err != nil {
		return err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return err
	}
	cfg.Architecture, cfg.OS = runtime.GOARCH, "linux"
	cfg.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	cfg.History = nil
	cfg.Config = v1.Config{Entrypoint: entrypoint, Cmd: command, User: user, Env: []string{"PATH=/bin"}}
	if img, err = mutate.ConfigFile(img, cfg); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendImage(img, layout.WithAnnotations(map[string]string{"io.containerd.image.name": reference})); err != nil {
		return err
	}
	return tarFolder(dir, out)
}

// layerTar is the layer: the files, in the given order, owned by root.
func layerTar(files []imageFile) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := addFile(w, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

func addFile(w *tar.Writer, f imageFile) error {
	h := &tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
	case strings.HasSuffix(f.Name, "/"):
		h.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(h); err != nil {
		return fmt.Errorf("image file %s: %w", f.Name, err)
	}
	_, err := w.Write(f.Content)
	return err
}

// tarFolder packs the files below dir, sorted by name.
func tarFolder(dir, out string) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		return addFile(w, imageFile{Name: filepath.ToSlash(rel), Content: content, Mode: 0o644})
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}
