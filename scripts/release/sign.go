package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aead.dev/minisign"

	"capacityv2.internal/scripts/run"
)

// signatureName is the detached signature of the sums, as minisign writes it. The sums cover
// everything else, so one signature is enough.
const signatureName = sumsName + ".minisig"

// PasswordVariable is the environment variable with the password of a secret key, which must
// not be on a command line.
const PasswordVariable = "MINISIGN_PASSWORD"

// ReadSecretKey reads a secret key of minisign's, with a password or without.
func ReadSecretKey(path string) (*minisign.PrivateKey, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var key minisign.PrivateKey
	if !minisign.IsEncrypted(b) {
		err = key.UnmarshalText(b)
	} else if password, ok := os.LookupEnv(PasswordVariable); ok {
		key, err = minisign.DecryptKey(password, b)
	} else {
		return nil, run.Refuse(path+" has a password", "it in the environment variable "+PasswordVariable, "read -rs "+PasswordVariable+"; export "+PasswordVariable)
	}
	if err != nil {
		return nil, run.Refuse(fmt.Sprintf("%s: %v", path, err), "a secret key of minisign's, and its password", "minisign -G")
	}
	return &key, nil
}

// ReadPublicKey reads a public key of minisign's.
func ReadPublicKey(path string) (*minisign.PublicKey, error) {
	key, err := minisign.PublicKeyFromFile(path)
	if err != nil {
		return nil, run.Refuse(fmt.Sprintf("%s: %v", path, err), "a public key of minisign's", "see the file minisign.pub of the one who signed")
	}
	return &key, nil
}

// sign signs the sums in dir for the release of that name. The same key gives the same bytes.
func sign(dir, release string, key minisign.PrivateKey) error {
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	signature := minisign.SignWithComments(key, sums, release, "signature of "+sumsName)
	return os.WriteFile(filepath.Join(dir, signatureName), signature, 0o644)
}

// verifySignature checks that the owner of the key has signed the sums in dir, for the release
// whose name dir has: not for an earlier one.
func verifySignature(dir string, key minisign.PublicKey) error {
	expected := fmt.Sprintf("a signature of %s by the key %X", sumsName, key.ID())
	path := filepath.Join(dir, signatureName)
	signature, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return run.Refuse("the release in "+dir+" is not signed", expected, "make release SIGN_KEY=FILE, or ask for "+signatureName)
	}
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	var s minisign.Signature
	refuse := func(found string) error { return run.Refuse(path+" "+found, expected, "") }
	switch err := s.UnmarshalText(signature); {
	case err != nil:
		return refuse("is no signature: " + err.Error())
	case s.KeyID != key.ID():
		return refuse(fmt.Sprintf("is by the key %X", s.KeyID))
	case !minisign.Verify(key, sums, signature):
		return refuse("does not fit: " + sumsName + " or the signature has been changed")
	case s.TrustedComment != filepath.Base(dir):
		return refuse(fmt.Sprintf("is for the release %q", s.TrustedComment))
	}
	return nil
}
