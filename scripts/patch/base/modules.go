// SPDX-License-Identifier: Apache-2.0

package base

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// downloaded is one module in the module cache.
type downloaded struct {
	Path, Version string
	Dir           string // in the module cache
	Zip           string
	Sum           string // h1: hash of its zip
	GoModSum      string // h1: hash of its go.mod
	Error         string
}

// PinnedVersion returns the version of the module that the pin folder requires.
func PinnedVersion(pin, path string) (string, error) {
	required, err := Pinned(pin)
	if err != nil {
		return "", err
	}
	for _, m := range required {
		if m.Path == path {
			return m.Version, nil
		}
	}
	return "", fmt.Errorf("%s/go.mod requires no %s", pin, path)
}

// Pinned returns the modules that the pin folder requires.
func Pinned(pin string) ([]module.Version, error) {
	b, err := os.ReadFile(filepath.Join(pin, "go.mod"))
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse("go.mod", b, nil)
	if err != nil {
		return nil, err
	}
	var required []module.Version
	for _, r := range f.Require {
		required = append(required, r.Mod)
	}
	return required, nil
}

// PinnedSums reads the h1 sums of the go.sum in the pin folder; nil if there is none.
func PinnedSums(pin string) (map[module.Version]string, error) {
	b, err := os.ReadFile(filepath.Join(pin, "go.sum"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sums := map[module.Version]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && !strings.HasSuffix(f[1], "/go.mod") {
			sums[module.Version{Path: f[0], Version: f[1]}] = f[2]
		}
	}
	return sums, nil
}

// download fetches modules (path@version) and checks every byte in the module
// cache against the go.sum in pin, or, without a line there, against what the
// go command checked with the checksum database. Those that cannot be fetched have
// an Error; a wrong checksum is not among them, but refused.
func download(ctx context.Context, pin, goVersion string, log io.Writer, queries []string) (fetched, failed []downloaded, err error) {
	env := append(toolchain.Env(), "GOWORK=off")
	if goVersion != "" {
		env = append(env, "GOTOOLCHAIN="+goVersion)
	}
	out, err := run.Cmd{
		Dir: pin, Env: env, Log: log, Name: "go",
		Args: append([]string{"mod", "download", "-json"}, queries...),
	}.Output(ctx)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m downloaded
		if e := dec.Decode(&m); errors.Is(e, io.EOF) {
			break
		} else if e != nil {
			return nil, nil, errors.Join(err, e)
		}
		switch {
		case strings.Contains(m.Error, checksumMismatch):
			return nil, nil, wrongChecksum(pin, m.Error)
		case m.Error != "":
			failed = append(failed, m)
		default:
			fetched = append(fetched, m)
		}
	}
	var exit *run.Error
	switch {
	case errors.As(err, &exit) && strings.Contains(exit.Tail, checksumMismatch):
		return nil, nil, wrongChecksum(pin, exit.Tail)
	case err != nil && len(failed) == 0:
		return nil, nil, err
	}
	if err := checkCache(pin, fetched); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(fetched, func(a, b downloaded) int { return strings.Compare(a.Path, b.Path) })
	return fetched, failed, nil
}

// checksumMismatch is what the go command says of other bytes than those it expects.
const checksumMismatch = "checksum mismatch"

func wrongChecksum(pin, found string) error {
	return run.Refuse("wrong checksum: "+found, "the sums of "+filepath.Join(pin, "go.sum"), "go env GOPROXY, and ask who serves it; or go clean -modcache")
}

// checkCache compares modules in the module cache with their sums.
func checkCache(pin string, modules []downloaded) error {
	sums, err := PinnedSums(pin)
	if err != nil {
		return err
	}
	for _, m := range modules {
		want, ok := sums[module.Version{Path: m.Path, Version: m.Version}]
		if !ok {
			want = m.Sum
		}
		got, err := dirhash.HashDir(m.Dir, m.Path+"@"+m.Version, dirhash.Hash1)
		if err != nil {
			return err
		}
		if got != want {
			return run.Refuse(fmt.Sprintf("wrong checksum: %s@%s in the module cache is %s", m.Path, m.Version, got),
				want, "go clean -modcache, then the same command again")
		}
	}
	return nil
}

// cannotFetch refuses a module that has an Error, and that the module by requires.
func cannotFetch(m downloaded, by string) error {
	name := m.Path + "@" + m.Version
	// The go command begins with the name, and may print several lines.
	reason := strings.Join(strings.Fields(strings.TrimPrefix(m.Error, name+":")), " ")
	if by != "" {
		name += ", which " + by + " requires"
	}
	return run.Refuse("cannot fetch "+name+": "+reason, "a version that the Go module proxy serves, with the checksum of go.sum", "go env GOPROXY GOSUMDB")
}
