// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/workspace"
)

// allImages are those of every project.
func allImages() map[string]imageSource {
	all := map[string]imageSource{}
	for _, p := range products {
		for _, a := range p.archives {
			for _, i := range a.images {
				all[i.program] = i
			}
		}
	}
	return all
}

func TestImage(t *testing.T) {
	bin, v := t.TempDir(), Version{"v1.37.2", 1}
	for _, project := range []string{workspace.Kubernetes, workspace.ExternalProvisioner} {
		for _, n := range Programs(project) {
			write(t, filepath.Join(bin, n), "program "+n)
		}
	}
	// What the image has, below tmp and etc: its entry point and other programs.
	for name, c := range map[string]struct{ repository, entrypoint, programs, capable string }{
		"kube-apiserver":          {"kube-apiserver", "/go-runner", "go-runner usr/local/bin/kube-apiserver", "usr/local/bin/kube-apiserver"},
		"kube-controller-manager": {"kube-controller-manager", "/go-runner", "go-runner usr/local/bin/kube-controller-manager", ""},
		"kube-scheduler":          {"kube-scheduler", "/go-runner", "go-runner usr/local/bin/kube-scheduler", ""},
		"kubectl":                 {"kubectl", "/bin/kubectl", "bin/kubectl", ""},
		"csi-provisioner":         {"sig-storage/csi-provisioner", "/csi-provisioner", "csi-provisioner", ""},
	} {
		src, ok := allImages()[name]
		if !ok {
			t.Errorf("no image of %s", name)
			continue
		}
		var made []string
		for range 2 {
			file := filepath.Join(t.TempDir(), "image.tar")
			reference, id, err := src.pack(t.Context(), v, bin, file, date)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sum(file)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, s+id)
			if want := "registry.k8s.io/" + c.repository + ":v1.37.2_capacityv2.1"; reference != want {
				t.Errorf("reference %s, want %s", reference, want)
			}
			programs, capable, entrypoint := readImage(t, file, id)
			if programs != c.programs || capable != c.capable || entrypoint != c.entrypoint {
				t.Errorf("%s has %q, of these capable %q, and starts %q", name, programs, capable, entrypoint)
			}
		}
		if made[0] != made[1] {
			t.Errorf("two images of %s differ", name)
		}
	}
	if got := len(allImages()); got != 5 {
		t.Errorf("%d images: one is not tested", got)
	}
}

// readImage reads the image as a container runtime does. It returns its programs,
// those with a capability, and the entry point.
func readImage(t *testing.T, path, id string) (programs, capable, entrypoint string) {
	t.Helper()
	i, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(i); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	config, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("image for %s/%s", config.OS, config.Architecture)
	}
	if name, err := i.ConfigName(); err != nil || name.String() != id {
		t.Errorf("ID %s, want %s, %v", name, id, err)
	}
	layers, err := i.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found, with := map[string]bool{}, map[string]bool{}
	err = eachMember(r, func(h *tar.Header, _ io.Reader) error {
		if strings.HasPrefix(h.Name, "tmp") && h.FileInfo().Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
			t.Errorf("tmp has the mode %v", h.FileInfo().Mode())
		}
		if h.Typeflag == tar.TypeReg && h.Mode == int64(files.Program) {
			found[h.Name] = true
		}
		switch h.PAXRecords["SCHILY.xattr.security.capability"] {
		case "":
		case netBindService:
			with[h.Name] = true
		default:
			t.Errorf("%s has an unknown capability", h.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	join := func(m map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }
	return join(found), join(with), strings.Join(config.Config.Entrypoint, " ")
}
