// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
)

// Image is a container image that every node gets, beside the one of pause.
type Image struct {
	// Reference is its name with a tag, as pods ask for it.
	Reference string
	// Entrypoint is the program, and Command its arguments, which a pod may replace.
	Entrypoint, Command []string
	// Files are files of this machine, by their path in the image, without a leading
	// slash: programs, and the libraries of those that are not static. The image has nothing
	// else but /tmp.
	Files map[string]string
	// Links are symbolic links in the image: what they point to, by their path.
	Links map[string]string

	// user is whom the program runs as, with the group; root if empty.
	user string
}

// write writes the image into a file.
func (i Image) write(ctx context.Context, file string) error {
	tree := files.Tree{}
	for at, program := range i.Files {
		if err := tree.AddFile(at, program, files.Program); err != nil {
			return fmt.Errorf("image %s: %w", i.Reference, err)
		}
	}
	for at, target := range i.Links {
		tree.AddLink(at, target)
	}
	_, err := files.Image{
		Reference: i.Reference, OS: "linux", Arch: runtime.GOARCH, Created: time.Unix(0, 0).UTC(), Files: tree,
		Config: v1.Config{Entrypoint: i.Entrypoint, Cmd: i.Command, User: cmp.Or(i.user, "0:0"), Env: []string{"PATH=/bin"}},
	}.WriteFile(ctx, file)
	return err
}

// Sum adds all that the image is made of to a hash.
func (i Image) Sum(h hash.Hash) error {
	if err := json.NewEncoder(h).Encode(i); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		if err := files.Copy(h, i.Files[name]); err != nil {
			return fmt.Errorf("image %s: %w", i.Reference, err)
		}
	}
	return nil
}

// pauseTag finds the version of the tree's pause image.
var pauseTag = regexp.MustCompile(`(?m)^TAG \?= (\S+)$`)

// pauseImage compiles the tree's pause into dir. The image has the name that upstream's own tests ask for,
// so that they find ours under it.
func pauseImage(ctx context.Context, tree, dir string, log io.Writer) (Image, error) {
	source := filepath.Join(tree, "build", "pause")
	makefile, err := os.ReadFile(filepath.Join(source, "Makefile"))
	if err != nil {
		return Image{}, err
	}
	tag := pauseTag.FindSubmatch(makefile)
	if tag == nil {
		return Image{}, fmt.Errorf("%s/Makefile: no TAG", source)
	}
	program := filepath.Join(dir, "pause")
	cc := run.Cmd{Name: "gcc", Log: log, Args: []string{"-Os", "-Wall", "-static", "-s", "-o", program, filepath.Join(source, "linux", "pause.c")}}
	// The user of upstream's image, so that it runs under "runAsNonRoot" too.
	return Image{Reference: "registry.k8s.io/pause:" + string(tag[1]), Entrypoint: []string{"/pause"},
		Files: map[string]string{"pause": program}, user: "65535:65535"}, cc.Run(ctx)
}

// WriteImages writes the tree's pause image and the others into a folder. It returns the reference of the
// first one, and the tarballs of all.
func WriteImages(ctx context.Context, tree string, others []Image, dir string, log io.Writer) (pause string, tarballs []string, err error) {
	first, err := pauseImage(ctx, tree, dir, log)
	if err != nil {
		return "", nil, err
	}
	for n, i := range slices.Concat([]Image{first}, others) {
		tarball := filepath.Join(dir, fmt.Sprintf("%d.tar", n))
		if err := i.write(ctx, tarball); err != nil {
			return "", nil, err
		}
		tarballs = append(tarballs, tarball)
	}
	return first.Reference, tarballs, nil
}
