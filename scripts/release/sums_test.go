package release

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/pack"
)

// fakeRelease writes a release with one tarball into dir.
func fakeRelease(t *testing.T, dir, content string) {
	t.Helper()
	c := pack.Tree{}
	c.AddBytes("kubernetes/f", []byte(content))
	c.AddBytes("kubernetes/same", nil)
	a, err := writeTarGz(t.Context(), c, dir, "x.tar.gz", date)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(Manifest{Version: "v1.37.2+capacityv2.1", Artefacts: []Artefact{a}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := writeFile(dir, ManifestName, b)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, SumsName), string(sumsFile([]Artefact{a, m})))
}

// flipByte changes the tarball and leaves the sums alone.
func flipByte(t *testing.T, dir string) {
	t.Helper()
	p := filepath.Join(dir, "x.tar.gz")
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	write(t, p, string(b))
}

// writeManifest replaces the manifest, and sets its sum.
func writeManifest(t *testing.T, dir, content string) {
	t.Helper()
	m, err := writeFile(dir, ManifestName, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	x, err := sumFile(dir, "x.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, SumsName), string(sumsFile([]Artefact{m, x})))
}

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		want string
	}{
		"intact":       {func(*testing.T, string) {}, ""},
		"flipped byte": {flipByte, "x.tar.gz has the SHA-256"},
		"missing file": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "x.tar.gz")); err != nil {
				t.Fatal(err)
			}
		}, "x.tar.gz is missing"},
		"file too many": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "extra"), "") }, "extra is not listed"},
		"no sums": {func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, SumsName)); err != nil {
				t.Fatal(err)
			}
		}, "no sums"},
		"path in the sums": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, SumsName), strings.Repeat("0", 64)+"  ../x\n")
		}, "../x"},
		"manifest of another build": {func(t *testing.T, dir string) {
			writeManifest(t, dir, `{"artefacts":[{"name":"x.tar.gz","sha256":"00"}]}`)
		}, "another sum in manifest.json"},
		"manifest that names nothing": {func(t *testing.T, dir string) { writeManifest(t, dir, `{}`) }, "x.tar.gz is not in manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fakeRelease(t, dir, "1")
			c.harm(t, dir)
			err := Verify(dir)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestCompareNamesTheMember(t *testing.T) {
	a, b, c := t.TempDir(), t.TempDir(), t.TempDir()
	fakeRelease(t, a, "1")
	fakeRelease(t, b, "1")
	fakeRelease(t, c, "2")
	if err := Compare(a, b); err != nil {
		t.Errorf("equal releases: %v", err)
	}
	err := Compare(a, c)
	if err == nil || !strings.Contains(err.Error(), "kubernetes/f") || strings.Contains(err.Error(), "kubernetes/same") {
		t.Errorf("error %v, want one that names kubernetes/f only", err)
	}
}

func TestCompareReadsTheFiles(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	fakeRelease(t, a, "1")
	fakeRelease(t, b, "1")
	flipByte(t, b)
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if err := Compare(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), b+" is not intact") {
			t.Errorf("error %v, want one that names %s", err, b)
		}
	}
}
