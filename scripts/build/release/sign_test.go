// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

func newKey(t *testing.T) (*minisign.PublicKey, *minisign.PrivateKey) {
	t.Helper()
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &public, &secret
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
}
