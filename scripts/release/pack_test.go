package release

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/workspace"
)

var date = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestTarballHasNothingOfTheMachine(t *testing.T) {
	var sums []string
	for i, perm := range []fs.FileMode{0o600, 0o777} {
		src, out := t.TempDir(), t.TempDir()
		content := tree{}
		for _, n := range []string{"b", "a/c", "a/b"} {
			write(t, filepath.Join(src, n), n)
			at := filepath.Join(src, n)
			if err := os.Chmod(at, perm); err != nil {
				t.Fatal(err)
			}
			when := time.Now().Add(time.Duration(i) * time.Hour)
			if err := os.Chtimes(at, when, when); err != nil {
				t.Fatal(err)
			}
		}
		if err := content.addFolder("kubernetes/x", src); err != nil {
			t.Fatal(err)
		}
		if err := content.addFile("kubernetes/program", filepath.Join(src, "b"), modeProgram); err != nil {
			t.Fatal(err)
		}
		// More than one gzip block.
		content.addBytes("kubernetes/large", []byte(strings.Repeat("0123456789", gzipBlock/4)))
		a, err := content.writeTarGz(t.Context(), out, "x.tar.gz", date)
		if err != nil {
			t.Fatal(err)
		}
		onDisk, err := sumFile(out, "x.tar.gz")
		if err != nil || onDisk != a {
			t.Errorf("reported %v, on disk %v, %v", a, onDisk, err)
		}
		sums = append(sums, a.SHA256)
		want := "kubernetes/ 755, kubernetes/large 644, kubernetes/program 755, kubernetes/x/ 755, kubernetes/x/a/ 755, kubernetes/x/a/b 644, kubernetes/x/a/c 644, kubernetes/x/b 644"
		if got := listing(t, filepath.Join(out, "x.tar.gz")); got != want {
			t.Errorf("members %s,\nwant %s", got, want)
		}
	}
	if sums[0] != sums[1] {
		t.Error("modes or times of the files change the tarball")
	}
}

// listing returns names and modes, and checks owner and date.
func listing(t *testing.T, path string) string {
	t.Helper()
	var out []string
	err := readTarGz(path, func(h *tar.Header, _ io.Reader) error {
		if h.Typeflag != tar.TypeXGlobalHeader && (h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(date)) {
			t.Errorf("%s: owner %d:%d %s:%s, date %s", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime)
		}
		out = append(out, fmt.Sprintf("%s %o", h.Name, h.Mode))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, ", ")
}

// The source tarball is the same for trees with other branches and tags, and
// upstream's version script finds the release in it.
func TestSourceTarball(t *testing.T) {
	v := Version{Base: "v1.37.1", Revision: 1}
	var sums []string
	for _, branch := range []string{"one", "two"} {
		dir, out := t.TempDir(), t.TempDir()
		write(t, filepath.Join(dir, "hack/lib/.gitattributes"), "version.sh export-subst\n")
		write(t, filepath.Join(dir, "hack/lib/version.sh"), "'$Format:%H$' '$Format:%D$'\n")
		if err := os.Chmod(filepath.Join(dir, "hack/lib/version.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("hack/lib", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		commitAll(t, dir)
		repo := gitrepo.Open(dir, nil)
		for _, args := range [][]string{{"checkout", "--quiet", "-b", branch}, {"tag", "tag-" + branch}} {
			if err := repo.Git(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
		head, err := repo.Rev(t.Context(), "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		a, err := packSource(t.Context(), dir, head, v, t.TempDir(), out, date, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, a.SHA256)
		path := filepath.Join(out, sourceTarball)
		listing(t, path)
		err = readTarGz(path, func(h *tar.Header, r io.Reader) error {
			b, err := io.ReadAll(r)
			switch {
			case h.Name == "link" && h.Linkname != "hack/lib":
				t.Errorf("link to %q", h.Linkname)
			case h.Name == "hack/lib/version.sh" && (h.Mode != 0o755 || !strings.Contains(string(b), head) || !strings.Contains(string(b), "tag: "+v.String())):
				t.Errorf("version.sh, mode %o: %s", h.Mode, b)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("branches or tags of the tree change the source tarball")
	}
}

func TestSeriesTarballHoldsTheListedPatchesOnly(t *testing.T) {
	ws := workspace.Workspace{Root: t.TempDir()}
	for n, c := range map[string]string{
		"patches/kubernetes/series": "# order\n0001-a.patch\n", "patches/kubernetes/0001-a.patch": "x", "patches/kubernetes/REVISION": "1",
		"patches/kubernetes/0001-a.patch~": "x", "patches/kubernetes/stray.patch": "x", "patches/csi-spec/series": "", "feature-gates.yaml": "gates: []\n",
	} {
		write(t, filepath.Join(ws.Root, n), c)
	}
	out := t.TempDir()
	if _, err := packSeries(t.Context(), ws, Version{"v1.37.1", 1}, out, date); err != nil {
		t.Fatal(err)
	}
	const top = "capacityv2-series-v1.37.1_capacityv2.1/"
	want := strings.Join([]string{" 755", "feature-gates.yaml 644", "patches/ 755", "patches/csi-spec/ 755", "patches/csi-spec/series 644",
		"patches/kubernetes/ 755", "patches/kubernetes/0001-a.patch 644", "patches/kubernetes/REVISION 644", "patches/kubernetes/series 644"}, ", "+top)
	if got := listing(t, filepath.Join(out, seriesTarball)); got != top+want {
		t.Errorf("members %s,\nwant %s", got, top+want)
	}
}

func TestImage(t *testing.T) {
	bin := t.TempDir()
	for _, n := range append([]string{logRunner}, imagePrograms...) {
		write(t, filepath.Join(bin, n), "program "+n)
	}
	v, p := Version{"v1.37.1", 1}, Platform{"linux", "arm64"}
	for _, n := range imagePrograms {
		var images []Image
		for range 2 {
			out := t.TempDir()
			img, err := packImage(t.Context(), n, p, v, bin, out, date)
			if err != nil {
				t.Fatal(err)
			}
			images = append(images, img)
			if onDisk, err := sumFile(out, n+".tar"); err != nil || onDisk != img.Tarball {
				t.Errorf("reported %v, on disk %v, %v", img.Tarball, onDisk, err)
			}
			// As a container runtime reads it.
			i, err := tarball.ImageFromPath(filepath.Join(out, n+".tar"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(i); err != nil {
				t.Errorf("%s: %v", n, err)
			}
			checkImage(t, n, out)
		}
		if images[0] != images[1] {
			t.Errorf("two images of %s differ: %v", n, images)
		}
		if want := "registry.k8s.io/" + n + "-arm64:v1.37.1_capacityv2.1"; images[0].Reference != want {
			t.Errorf("reference %s, want %s", images[0].Reference, want)
		}
	}
}

// checkImage looks for the program, its entry point and its capability.
func checkImage(t *testing.T, name, dir string) {
	t.Helper()
	i, err := tarball.ImageFromPath(filepath.Join(dir, name+".tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
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
	found := map[string]string{}
	err = eachMember(r, func(h *tar.Header, _ io.Reader) error {
		found["/"+h.Name] = h.PAXRecords["SCHILY.xattr.security.capability"]
		if strings.HasPrefix(h.Name, "tmp") && h.FileInfo().Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
			t.Errorf("tmp has the mode %v", h.FileInfo().Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "/usr/local/bin/" + name
	if name == "kubectl" {
		want = "/bin/kubectl"
	}
	capability, ok := found[want]
	if !ok {
		t.Errorf("%s: no %s in %v", name, want, sortedKeys(found))
	}
	if (name == "kube-apiserver") != (capability == netBindService) {
		t.Errorf("%s has the capability %q", name, capability)
	}
	if _, ok := found[config.Config.Entrypoint[0]]; !ok {
		t.Errorf("%s: entry point %v is not in the image", name, config.Config.Entrypoint)
	}
	if config.OS != "linux" || config.Architecture != "arm64" {
		t.Errorf("image for %s/%s", config.OS, config.Architecture)
	}
}
