package specs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The parts of a tree that name images: what specs ask for themselves, and what the
// pods of the mock driver run.
const (
	imageList   = "test/utils/image/manifest.go"
	mockObjects = "test/e2e/testing-manifests/storage-csi/mock"
)

var (
	registryLine = regexp.MustCompile(`(?m)^\t\t(\w+): +"([^"]+)",$`)
	imageLine    = regexp.MustCompile(`(?m)^\tconfigs\[(\w+)\] = Config\{list\.(\w+), "([^"]+)", "([^"]+)"\}$`)
	podLine      = regexp.MustCompile(`(?m)^\s*image: (\S+)$`)
)

// Images returns the references under which a tree asks for images, by the name of
// their program, such as csi-provisioner. It has more than we build.
func Images(tree string) (map[string][]string, error) {
	images := map[string][]string{}
	add := func(reference string) {
		name := reference[strings.LastIndex(reference, "/")+1:]
		name, _, _ = strings.Cut(name, ":")
		if !slices.Contains(images[name], reference) {
			images[name] = append(images[name], reference)
		}
	}
	list, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(imageList)))
	if err != nil {
		return nil, err
	}
	registries := map[string]string{}
	for _, m := range registryLine.FindAllSubmatch(list, -1) {
		registries[string(m[1])] = string(m[2])
	}
	for _, m := range imageLine.FindAllSubmatch(list, -1) {
		// Another name is an older version, or one that nobody is allowed to have.
		if strings.EqualFold(string(m[1]), strings.ReplaceAll(string(m[3]), "-", "")) {
			add(fmt.Sprintf("%s/%s:%s", registries[string(m[2])], m[3], m[4]))
		}
	}
	err = fs.WalkDir(os.DirFS(tree), mockObjects, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(filepath.Join(tree, filepath.FromSlash(path)))
		for _, m := range podLine.FindAllSubmatch(content, -1) {
			add(string(m[1]))
		}
		return err
	})
	if err == nil && len(images) == 0 {
		err = errors.New(tree + " names no image")
	}
	return images, err
}
