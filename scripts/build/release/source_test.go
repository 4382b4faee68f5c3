// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

// The source tarball is the same for trees with other branches and tags, and
// upstream's version script finds the release in it.
func TestSourceTarball(t *testing.T) {
	ws, v := workspace.Workspace{}, Version{Base: "v1.37.2", Revision: 1}
	var sums []string
	for _, branch := range []string{"one", "two"} {
		out := t.TempDir()
		ws.Root = t.TempDir()
		ws.Work = filepath.Join(ws.Root, "_work")
		p := addProject(t, ws, "some-project", "example.com/some", "v1.0.0")
		dir := p.Tree()
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
		if err := packSource(t.Context(), source{project: p, stamp: Stamp{Commit: head, Version: v}}, t.TempDir(), out, io.Discard); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(out, "some-project-src.tar.gz")
		s, err := sum(path)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, s)
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

// A stranger finds what applies the series and what compiles the result, and nothing else.
func TestSeriesTarball(t *testing.T) {
	ws := workspace.Workspace{Root: t.TempDir()}
	addProject(t, ws, "csi-spec", "example.com/spec", "v1.0.0")
	addProject(t, ws, workspace.Kubernetes, "k8s.io/kubernetes", "v1.37.2")
	testtree.Write(t, ws.Root, map[string]string{
		"patches/kubernetes/series": "# order\n0001-a.patch\n", "patches/kubernetes/0001-a.patch": "x", "patches/REVISION": "1",
		"patches/kubernetes/0001-a.patch~": "x", "patches/kubernetes/stray.patch": "x", "feature-gates.yaml": "gates: []\n",
		"patches/csi-spec/go.work": "x", "patches/csi-spec/go.work.sum": "x", "patches/csi-spec/stray": "x",
	})
	out := t.TempDir()
	if err := packSeries(t.Context(), ws, Version{"v1.37.2", 1}, out, date); err != nil {
		t.Fatal(err)
	}
	const top = "capacityv2-series-v1.37.2_capacityv2.1/"
	want := strings.Join([]string{" 755", "SHA256SUMS 644", "feature-gates.yaml 644",
		"patches/ 755", "patches/REVISION 644", "patches/csi-spec/ 755", "patches/csi-spec/go.work 644", "patches/csi-spec/go.work.sum 644", "patches/csi-spec/project.yaml 644", "patches/csi-spec/series 644",
		"patches/kubernetes/ 755", "patches/kubernetes/0001-a.patch 644", "patches/kubernetes/project.yaml 644", "patches/kubernetes/series 644"}, ", "+top)
	if got := listing(t, filepath.Join(out, seriesTarball)); got != top+want {
		t.Errorf("members %s,\nwant %s", got, top+want)
	}
	err := readTarGz(filepath.Join(out, seriesTarball), func(h *tar.Header, r io.Reader) error {
		b, err := io.ReadAll(r)
		if want := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  patches/kubernetes/0001-a.patch\n"; h.Name == top+sumsName && string(b) != want {
			t.Errorf("sums %q, want %q", b, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	write(t, filepath.Join(ws.Root, "patches/kubernetes/series"), "0002-gone.patch\n")
	if err := packSeries(t.Context(), ws, Version{"v1.37.2", 1}, out, date); err == nil {
		t.Error("a series without its patch is packed")
	}
}
