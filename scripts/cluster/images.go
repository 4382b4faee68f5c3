package cluster

import (
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Image is a container image that every node gets, beside the one of pause.
type Image struct {
	// Reference is its name with a tag, as pods ask for it.
	Reference string
	// Entrypoint is the program, and Command its arguments, which a pod may replace.
	Entrypoint, Command []string
	// Files are files of this machine, by their path in the image, without a leading
	// slash. They have to be static programs: the image has nothing else but /tmp.
	Files map[string]string
	// Links are symbolic links in the image: what they point to, by their path.
	Links map[string]string
}

// write writes the image into a folder and returns the tarball.
func (i Image) write(dir string, number int) (string, error) {
	files := []imageFile{{Name: "tmp/", Mode: 0o1777}}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		content, err := os.ReadFile(i.Files[name])
		if err != nil {
			return "", fmt.Errorf("image %s: %w", i.Reference, err)
		}
		files = append(files, imageFile{Name: name, Content: content, Mode: 0o755})
	}
	for _, name := range slices.Sorted(maps.Keys(i.Links)) {
		files = append(files, imageFile{Name: name, Link: i.Links[name], Mode: 0o777})
	}
	out := filepath.Join(dir, fmt.Sprintf("%d.tar", number))
	return out, writeImage(out, i.Reference, i.Entrypoint, i.Command, "0:0", files)
}

// sum adds all that the image is made of to a hash.
func (i Image) sum(h hash.Hash) error {
	if err := json.NewEncoder(h).Encode(i); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		f, err := os.Open(i.Files[name])
		if err != nil {
			return fmt.Errorf("image %s: %w", i.Reference, err)
		}
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// writeImages writes all images into a folder and returns the tarballs.
func writeImages(images []Image, dir string) ([]string, error) {
	var tarballs []string
	for n, i := range images {
		tarball, err := i.write(dir, n)
		if err != nil {
			return nil, err
		}
		tarballs = append(tarballs, tarball)
	}
	return tarballs, nil
}
