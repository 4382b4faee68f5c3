package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/run"
)

// fakeRelease writes a release with one tarball, signed unless there is no key.
func fakeRelease(t *testing.T, content string, key *minisign.PrivateKey) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "v1.37.2+capacityv2.1")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := files.Tree{}
	c.AddBytes("kubernetes/f", []byte(content))
	c.AddBytes("kubernetes/same", nil)
	if err := writeTarGz(t.Context(), c, filepath.Join(dir, "x.tar.gz"), date); err != nil {
		t.Fatal(err)
	}
	writeProvenance(t, dir)
	if key != nil {
		if err := sign(dir, filepath.Base(dir), *key); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// writeProvenance writes the provenance of what is in dir, and new sums.
func writeProvenance(t *testing.T, dir string) {
	t.Helper()
	sums, err := sumFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	delete(sums, provenanceName)
	b, err := newProvenance(inputs{}, sums)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, provenanceName), string(b))
	updateSums(t, dir)
}

func updateSums(t *testing.T, dir string) {
	t.Helper()
	sums, err := sumFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, sumsName), string(sumsList(sums)))
}

// flipByte changes a file.
func flipByte(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	write(t, path, string(b))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(dir string)
		want string
	}{
		"intact":          {func(string) {}, ""},
		"flipped byte":    {func(dir string) { flipByte(t, filepath.Join(dir, "x.tar.gz")) }, "x.tar.gz has the SHA-256"},
		"missing file":    {func(dir string) { remove(t, filepath.Join(dir, "x.tar.gz")) }, "x.tar.gz is missing"},
		"file too many":   {func(dir string) { write(t, filepath.Join(dir, "extra"), "") }, "extra is not listed"},
		"folder too many": {func(dir string) { write(t, filepath.Join(dir, "folder/extra"), "") }, "folder is not listed"},
		"no sums":         {func(dir string) { remove(t, filepath.Join(dir, sumsName)) }, "no sums"},
		"path in the sums": {func(dir string) {
			write(t, filepath.Join(dir, sumsName), strings.Repeat("0", 64)+"  ../x\n")
		}, "../x"},
		"a file twice in the sums": {func(dir string) {
			write(t, filepath.Join(dir, sumsName), strings.Repeat(strings.Repeat("0", 64)+"  x\n", 2))
		}, "holds the line"},
		"provenance of another build": {func(dir string) {
			flipByte(t, filepath.Join(dir, "x.tar.gz"))
			updateSums(t, dir)
		}, "provenance.intoto.json is not that of x.tar.gz"},
		"provenance that names nothing": {func(dir string) {
			write(t, filepath.Join(dir, provenanceName), "{}")
			updateSums(t, dir)
		}, "provenance.intoto.json is not that of x.tar.gz"},
		"provenance of more": {func(dir string) {
			remove(t, filepath.Join(dir, "x.tar.gz"))
			updateSums(t, dir)
		}, "provenance.intoto.json is not that of x.tar.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fakeRelease(t, "1", nil)
			c.harm(dir)
			err := Verify(dir, nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func newKey(t *testing.T) (*minisign.PublicKey, *minisign.PrivateKey) {
	t.Helper()
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &public, &secret
}

func TestVerifySignature(t *testing.T) {
	public, secret := newKey(t)
	other, otherSecret := newKey(t)
	for name, c := range map[string]struct {
		key  *minisign.PublicKey
		harm func(dir string)
		want string
	}{
		"signed":       {public, func(string) {}, ""},
		"no key":       {nil, func(dir string) { remove(t, filepath.Join(dir, signatureName)) }, ""},
		"no signature": {public, func(dir string) { remove(t, filepath.Join(dir, signatureName)) }, "is not signed"},
		"another key":  {other, func(string) {}, "is by the key "},
		"changed sums": {public, func(dir string) { flipByte(t, filepath.Join(dir, sumsName)) }, "does not fit"},
		"changed file": {public, func(dir string) { flipByte(t, filepath.Join(dir, "x.tar.gz")) }, "x.tar.gz has the SHA-256"},
		"changed file with its sum": {public, func(dir string) {
			flipByte(t, filepath.Join(dir, "x.tar.gz"))
			writeProvenance(t, dir)
		}, "does not fit"},
		"no signature at all": {public, func(dir string) { write(t, filepath.Join(dir, signatureName), "signature") }, "is no signature"},
		"signature of an earlier release": {public, func(dir string) {
			if err := sign(dir, "v1.37.2+capacityv2.0", *secret); err != nil {
				t.Fatal(err)
			}
		}, `is for the release "v1.37.2+capacityv2.0"`},
		"another release name, not signed": {public, func(dir string) {
			if err := sign(dir, "v1.37.2+capacityv2.0", *secret); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, signatureName)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, strings.Replace(string(b), "capacityv2.0", "capacityv2.1", 1))
		}, "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fakeRelease(t, "1", secret)
			c.harm(dir)
			err := Verify(dir, c.key)
			if (err == nil) != (c.want == "") || err != nil && (!run.IsRefusal(err) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if err := Compare(fakeRelease(t, "1", secret), fakeRelease(t, "1", otherSecret)); err != nil {
		t.Errorf("the same release, signed by two: %v", err)
	}
}

func TestReadSecretKey(t *testing.T) {
	public, secret := newKey(t)
	plain, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := minisign.EncryptKey("a password", *secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content  []byte
		password []string
		want     string
	}{
		"no password":      {plain, nil, ""},
		"password":         {encrypted, []string{"a password"}, ""},
		"password missing": {encrypted, nil, "has a password"},
		"another password": {encrypted, []string{"another"}, "a secret key of minisign's, and its password"},
		"no key":           {[]byte("key"), nil, "a secret key of minisign's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(PasswordVariable, "")
			if err := os.Unsetenv(PasswordVariable); err != nil {
				t.Fatal(err)
			}
			for _, p := range c.password {
				t.Setenv(PasswordVariable, p)
			}
			path := filepath.Join(t.TempDir(), "key")
			write(t, path, string(c.content))
			key, err := ReadSecretKey(path)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && !public.Equal(key.Public()) {
				t.Errorf("key %v, error %v, want %q", key, err, c.want)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "minisign.pub")
	write(t, path, "untrusted comment: x\n"+public.String()+"\n")
	if got, err := ReadPublicKey(path); err != nil || !public.Equal(*got) {
		t.Errorf("public key %v, %v", got, err)
	}
	write(t, path, string(plain))
	if _, err := ReadPublicKey(path); !run.IsRefusal(err) {
		t.Errorf("a secret key in place of a public one: %v", err)
	}
}

func TestCompareNamesTheMember(t *testing.T) {
	a, b, c := fakeRelease(t, "1", nil), fakeRelease(t, "1", nil), fakeRelease(t, "2", nil)
	if err := Compare(a, b); err != nil {
		t.Errorf("equal releases: %v", err)
	}
	err := Compare(a, c)
	if err == nil || !strings.Contains(err.Error(), "x.tar.gz differs in kubernetes/f\n") {
		t.Errorf("error %v, want one that names kubernetes/f only", err)
	}
}

func TestCompareNamesTheFolder(t *testing.T) {
	a, b := fakeRelease(t, "1", nil), fakeRelease(t, "1", nil)
	write(t, filepath.Join(b, "extra"), "")
	writeProvenance(t, b)
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if err := Compare(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "extra is only in "+b+"\n") {
			t.Errorf("error %v, want one that names extra and %s", err, b)
		}
	}
}

func TestCompareReadsTheFiles(t *testing.T) {
	a, b := fakeRelease(t, "1", nil), fakeRelease(t, "1", nil)
	flipByte(t, filepath.Join(b, "x.tar.gz"))
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if err := Compare(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), b+" is not intact") {
			t.Errorf("error %v, want one that names %s", err, b)
		}
	}
}
