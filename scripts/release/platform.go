package release

import (
	"runtime"
	"slices"
	"strings"

	"capacityv2.internal/scripts/progress"
)

// Platform is an operating system and an architecture, in Go's names.
type Platform struct{ OS, Arch string }

// supported says for which systems upstream releases what: servers and nodes
// on Linux only (we leave out Windows nodes), clients on all.
var supported = map[string][]string{
	"linux":   {"amd64", "arm64", "ppc64le", "s390x"},
	"darwin":  {"amd64", "arm64"},
	"windows": {"amd64", "arm64"},
}

// ParsePlatforms reads a list such as "linux/amd64,linux/arm64". An empty list
// means Linux on this machine's architecture, and this machine's system too.
func ParsePlatforms(list string) ([]Platform, error) {
	fields := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if len(fields) == 0 {
		fields = []string{"linux/" + runtime.GOARCH, runtime.GOOS + "/" + runtime.GOARCH}
	}
	var out []Platform
	for _, f := range fields {
		os, arch, _ := strings.Cut(f, "/")
		if !slices.Contains(supported[os], arch) {
			return nil, progress.Refuse("unknown platform "+f, "one or more of "+strings.Join(allPlatforms(), ", "), "make release PLATFORMS=linux/amd64,linux/arm64")
		}
		out = append(out, Platform{os, arch})
	}
	slices.SortFunc(out, func(a, b Platform) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out), nil
}

func allPlatforms() []string {
	var out []string
	for os, archs := range supported {
		for _, a := range archs {
			out = append(out, os+"/"+a)
		}
	}
	slices.Sort(out)
	return out
}

// Host is the platform of this machine.
func Host() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// tag is the platform in upstream's file names: linux-amd64.
func (p Platform) tag() string { return p.OS + "-" + p.Arch }

// file is the file name of a program for p.
func (p Platform) file(program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}
