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
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// downloaded is one module in the module cache.
type downloaded struct {
	Path, Version string
	Dir           string // in the module cache
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

// StagingVersion returns the version of the staging modules that belong to a
// version of Kubernetes: v1.37.1 gives v0.37.1.
func StagingVersion(kubernetes string) (string, error) {
	if !semver.IsValid(kubernetes) || semver.Major(kubernetes) != "v1" || semver.Build(kubernetes) != "" {
		return "", progress.Refuse(fmt.Sprintf("unknown base %q", kubernetes), "a tag of Kubernetes such as v1.37.1", "make rebase BASE=v1.37.1")
	}
	return "v0" + strings.TrimPrefix(kubernetes, "v1"), nil
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
// go command checked with the checksum database.
func download(ctx context.Context, pin string, log io.Writer, queries []string) ([]downloaded, error) {
	out, err := run.Cmd{
		Dir: pin, Env: append(toolchain.Env(), "GOWORK=off"), Log: log, Name: "go",
		Args: append([]string{"mod", "download", "-json"}, queries...),
	}.Output(ctx)
	var mods []downloaded
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m downloaded
		if e := dec.Decode(&m); errors.Is(e, io.EOF) {
			break
		} else if e != nil {
			return nil, errors.Join(err, e)
		}
		if m.Error != "" {
			return nil, progress.Refuse("cannot fetch "+m.Path+"@"+m.Version+": "+m.Error, "a version that the Go module proxy serves, with the checksum of go.sum", "go env GOPROXY GOSUMDB")
		}
		mods = append(mods, m)
	}
	var failed *run.Error
	if errors.As(err, &failed) && strings.Contains(failed.Tail, "checksum mismatch") {
		return nil, progress.Refuse("wrong checksum: "+failed.Tail, "the sums of "+filepath.Join(pin, "go.sum"), "go env GOPROXY, and ask who serves it; or go clean -modcache")
	}
	if err != nil {
		return nil, err
	}
	sums, err := PinnedSums(pin)
	if err != nil {
		return nil, err
	}
	for _, m := range mods {
		want, ok := sums[module.Version{Path: m.Path, Version: m.Version}]
		if !ok {
			want = m.Sum
		}
		got, err := dirhash.HashDir(m.Dir, m.Path+"@"+m.Version, dirhash.Hash1)
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, progress.Refuse(
				fmt.Sprintf("wrong checksum: %s@%s in the module cache is %s", m.Path, m.Version, got), want,
				"go clean -modcache, then the same command again")
		}
	}
	slices.SortFunc(mods, func(a, b downloaded) int { return strings.Compare(a.Path, b.Path) })
	return mods, nil
}

// stagingModules reads the names of the staging modules from the main tree's
// go.work.
func stagingModules(dir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return nil, err
	}
	f, err := modfile.ParseWork("go.work", b, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, u := range f.Use {
		if n, ok := strings.CutPrefix(u.Path, "./staging/src/"); ok {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s/go.work names no staging module", dir)
	}
	return names, nil
}
