// SPDX-License-Identifier: Apache-2.0

// Package toolchain runs the Go command the same way everywhere, builds pinned tools with it, and checks what the machine
// has to have.
package toolchain

import (
	"context"
	"go/version"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// GoVersion is the Go release of the base's .go-version, which [CheckVersion] compares.
// Another one of the same language builds, but gives other bytes.
const GoVersion = "go1.26.10"

// VersionFile has, at the top of a tree of Kubernetes, the Go release that upstream builds it with.
const VersionFile = ".go-version"

// Tags are the build tags of upstream's own builds (hack/lib/golang.sh).
const Tags = "selinux,notest,grpcnotrace"

// Flags are GOFLAGS of every Go command. Nothing here reads debugging information, and it takes an eighth of the
// compiler's time.
const Flags = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false"

// Shape is the environment that shapes the bytes of programs. One value of each, everywhere: another one compiles the
// whole tree again. Those behind GOFLAGS are Go's defaults, which a user may have changed.
var Shape = []string{"CGO_ENABLED=0", "GOFLAGS=" + Flags, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOEXPERIMENT="}

// Env is the environment of every Go command.
func Env() []string {
	return append(slices.Clone(Shape), "GOWORK=", "GOTOOLCHAIN="+toolchain())
}

// Eager is [Env] for compilers, linters and tests: they have memory to spare and no
// processors, so they collect garbage less often. What they make is the same. Benchmarks and
// clusters run without it.
func Eager() []string {
	if os.Getenv("GOGC") != "" {
		return Env()
	}
	return append(Env(), "GOGC=400")
}

// InTree is what a go command in dir has beside [Env]: in a tree for which upstream has a later Go than the one that runs
// here, the release that the tree names.
func InTree(dir string) []string {
	for d := dir; ; d = filepath.Dir(d) {
		content, err := os.ReadFile(filepath.Join(d, VersionFile))
		if named := "go" + strings.TrimSpace(string(content)); err == nil && version.Compare(version.Lang(named), version.Lang(runtime.Version())) > 0 {
			return []string{"GOTOOLCHAIN=" + named}
		}
		if err == nil || d == filepath.Dir(d) {
			return nil
		}
	}
}

// toolchain names the release only where the installed one differs: naming the
// installed one makes the Go command look for it in the module cache.
func toolchain() string {
	if t := os.Getenv("GOTOOLCHAIN"); t != "" {
		return t
	}
	return "local"
}

// UpstreamEnv is the environment of upstream's own scripts: [Eager], the installed
// Go, and its caches, because their setup_env would otherwise fill a second set.
func UpstreamEnv(ctx context.Context) ([]string, error) {
	env := append(Eager(), "FORCE_HOST_GO=y")
	for _, k := range []string{"GOCACHE", "GOMODCACHE"} {
		v, err := GoValue(ctx, k)
		if err != nil {
			return nil, err
		}
		env = append(env, k+"="+v)
	}
	return env, nil
}

// Go runs `go args...` in dir.
func Go(ctx context.Context, dir string, log io.Writer, args ...string) error {
	return GoEnv(ctx, dir, nil, log, args...)
}

// GoEnv is [Go] with more environment variables.
func GoEnv(ctx context.Context, dir string, env []string, log io.Writer, args ...string) error {
	return run.Cmd{Dir: dir, Env: slices.Concat(Eager(), env, InTree(dir)), Log: log, Name: "go", Args: args}.Run(ctx)
}

// CheckVersion refuses a base that is built with another release of Go, which the file at
// path names.
func CheckVersion(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if v := strings.TrimSpace(string(content)); "go"+v != GoVersion {
		return run.Refuse("the base is built with Go "+v, GoVersion+", as toolchain.GoVersion says", "set GoVersion; a test names the other places")
	}
	return nil
}

// GoValue returns one variable of `go env`.
func GoValue(ctx context.Context, name string) (string, error) {
	out, err := run.Cmd{Name: "go", Args: []string{"env", name}, Env: Env()}.Output(ctx)
	return strings.TrimSpace(string(out)), err
}
