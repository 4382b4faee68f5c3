package release

import (
	"archive/tar"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"capacityv2.internal/scripts/pack"
	"capacityv2.internal/scripts/workspace"
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
	bin := t.TempDir()
	for _, project := range []string{workspace.Kubernetes, workspace.ExternalProvisioner} {
		for _, n := range (Platform{"linux", "arm64"}).programs(project) {
			write(t, filepath.Join(bin, n), "program "+n)
		}
	}
	// What the image has, below tmp and etc: its entry point and other programs.
	for name, c := range map[string]struct{ reference, entrypoint, programs, capable string }{
		"kube-apiserver":          {"registry.k8s.io/kube-apiserver-arm64:v1.37.2_capacityv2.1", "/go-runner", "go-runner usr/local/bin/kube-apiserver", "usr/local/bin/kube-apiserver"},
		"kube-controller-manager": {"registry.k8s.io/kube-controller-manager-arm64:v1.37.2_capacityv2.1", "/go-runner", "go-runner usr/local/bin/kube-controller-manager", ""},
		"kube-scheduler":          {"registry.k8s.io/kube-scheduler-arm64:v1.37.2_capacityv2.1", "/go-runner", "go-runner usr/local/bin/kube-scheduler", ""},
		"kubectl":                 {"registry.k8s.io/kubectl-arm64:v1.37.2_capacityv2.1", "/bin/kubectl", "bin/kubectl", ""},
		"csi-provisioner":         {"registry.k8s.io/sig-storage/csi-provisioner:v1.37.2_capacityv2.1", "/csi-provisioner", "csi-provisioner", ""},
	} {
		src, ok := allImages()[name]
		if !ok {
			t.Errorf("no image of %s", name)
			continue
		}
		var images []Image
		for range 2 {
			out := t.TempDir()
			img, err := packImage(t.Context(), src, Platform{"linux", "arm64"}, Version{"v1.37.2", 1}, bin, out, date)
			if err != nil {
				t.Fatal(err)
			}
			images = append(images, img)
			if onDisk, err := sumFile(out, name+".tar"); err != nil || onDisk != img.Tarball {
				t.Errorf("reported %v, on disk %v, %v", img.Tarball, onDisk, err)
			}
			programs, capable, entrypoint := readImage(t, filepath.Join(out, name+".tar"))
			if programs != c.programs || capable != c.capable || entrypoint != c.entrypoint {
				t.Errorf("%s has %q, of these capable %q, and starts %q", name, programs, capable, entrypoint)
			}
		}
		if images[0] != images[1] {
			t.Errorf("two images of %s differ: %v", name, images)
		}
		if images[0].Reference != c.reference {
			t.Errorf("reference %s, want %s", images[0].Reference, c.reference)
		}
	}
	if got := len(allImages()); got != 5 {
		t.Errorf("%d images: one is not tested", got)
	}
}

// readImage reads the image as a container runtime does. It returns its programs,
// those with a capability, and the entry point.
func readImage(t *testing.T, path string) (programs, capable, entrypoint string) {
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
	if config.OS != "linux" || config.Architecture != "arm64" {
		t.Errorf("image for %s/%s", config.OS, config.Architecture)
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
	err = pack.EachMember(r, func(h *tar.Header, _ io.Reader) error {
		if strings.HasPrefix(h.Name, "tmp") && h.FileInfo().Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
			t.Errorf("tmp has the mode %v", h.FileInfo().Mode())
		}
		if h.Typeflag == tar.TypeReg && h.Mode == int64(pack.Program) {
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
