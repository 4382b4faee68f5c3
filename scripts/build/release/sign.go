// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"path/filepath"

	"aead.dev/minisign"

	"capacityv2.internal/scripts/ground/run"
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
		return nil, run.Refuse(path+" has a password",
			"it in the environment variable "+PasswordVariable, "read -rs "+PasswordVariable+"; export "+PasswordVariable)
	}
	if err != nil {
		return nil, run.Refuse(fmt.Sprintf("%s: %v", path, err), "a secret key of minisign's, and its password", "minisign -G")
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
