// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image is a container image of one layer: static programs need nothing below them.
type Image struct {
	// Reference is its name with a tag.
	Reference string
	OS, Arch  string
	Created   time.Time
	// CreatedBy is what its history says.
	CreatedBy string
	Config    v1.Config
	// Files are what it has beside an empty tmp.
	Files Tree
}

// WriteFile writes the image in the form of `docker save`, which container runtimes import,
// and returns the digest of its configuration. The layer is not compressed.
func (i Image) WriteFile(ctx context.Context, path string) (config string, err error) {
	tree := Tree{"tmp": {Mode: fs.ModeDir | fs.ModeSticky | 0o777}}
	maps.Copy(tree, i.Files)
	var layer bytes.Buffer
	if err := tree.WriteTar(ctx, &layer, i.Created); err != nil {
		return "", err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer),
		History: v1.History{Created: v1.Time{Time: i.Created}, CreatedBy: i.CreatedBy},
	})
	if err != nil {
		return "", err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = i.OS, i.Arch, v1.Time{Time: i.Created}, i.Config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return "", err
	}
	digest, err := image.ConfigName()
	if err != nil {
		return "", err
	}
	tag, err := name.NewTag(i.Reference)
	if err != nil {
		return "", err
	}
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return digest.String(), errors.Join(tarball.Write(tag, image, f), f.Close())
}
