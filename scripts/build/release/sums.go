// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sumsName is the file with the sums of all others, in the format of sha256sum.
const sumsName = "SHA256SUMS"

// sumFolder returns the sums of all files in dir.
func sumFolder(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	sums := map[string]string{}
	for _, e := range entries {
		s, errSum := sum(filepath.Join(dir, e.Name()))
		sums[e.Name()], err = s, errors.Join(err, errSum)
	}
	return sums, err
}

// sumsList lists sums, or other digests, one in a line with what it is of.
func sumsList(sums map[string]string) []byte {
	var b strings.Builder
	for _, name := range sortedKeys(sums) {
		fmt.Fprintf(&b, "%s  %s\n", sums[name], name)
	}
	return []byte(b.String())
}
