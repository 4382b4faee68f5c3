// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"cmp"
	"context"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"capacityv2.internal/scripts/ground/run"
)

// Seccomp stands for the C library of that name, which is not a program.
const Seccomp = "libseccomp"

// debianPackages names the packages of a program where the two differ.
var debianPackages = map[string]string{
	"protoc": "protobuf-compiler", "gcc": "gcc libc6-dev", "ip": "iproute2", "ss": "iproute2", "ps": "procps", "pgrep": "procps",
	"busybox": "busybox-static", "dd": "coreutils", "losetup": "mount", "mke2fs": "e2fsprogs", "ldd": "libc-bin", Seccomp: "libseccomp-dev",
}

// RequirePrograms refuses when one of the programs is not in PATH, and names
// the Debian packages that have them.
func RequirePrograms(ctx context.Context, names ...string) error {
	packages := missingPackages(ctx, names)
	if len(packages) == 0 {
		return nil
	}
	return run.Refuse("missing Debian packages: "+strings.Join(packages, ", "),
		strings.Join(names, ", ")+" in PATH", "apt-get install "+strings.Join(packages, " "))
}

// EnsurePrograms is [RequirePrograms] that helps itself where it may: as root
// on Debian it installs the packages of the missing programs, and says so.
func EnsurePrograms(ctx context.Context, s *run.Step, names ...string) error {
	missing := missingPackages(ctx, names)
	if len(missing) == 0 {
		return nil
	}
	if err := InstallPackages(ctx, s, missing...); err != nil {
		return err
	}
	return RequirePrograms(ctx, names...)
}

// InstallPackages installs Debian packages. It refuses, with the line to run,
// without root or apt-get.
func InstallPackages(ctx context.Context, s *run.Step, packages ...string) error {
	line := "apt-get install --yes --no-install-recommends " + strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return run.Refuse("missing Debian packages: "+strings.Join(packages, ", "), "all of them installed", "sudo "+line)
	}
	s.Sayf("installing Debian packages: %s", strings.Join(packages, " "))
	apt := run.Cmd{Log: s.Log, Name: "apt-get", Env: []string{"DEBIAN_FRONTEND=noninteractive"}}
	apt.Args = []string{"update", "--quiet"}
	if err := apt.Run(ctx); err != nil {
		return err
	}
	apt.Args = strings.Fields(line)[1:]
	return apt.Run(ctx)
}

// has reports whether a program is in PATH, or the library is there.
func has(ctx context.Context, program string) bool {
	if program == Seccomp {
		return run.Cmd{Name: "pkg-config", Args: []string{"--exists", "libseccomp"}}.Run(ctx) == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// packagesOf returns the Debian packages that have the programs, sorted.
func packagesOf(programs ...string) []string {
	var packages []string
	for _, n := range programs {
		packages = append(packages, strings.Fields(cmp.Or(debianPackages[n], n))...)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// missingPackages names the Debian packages of the programs that are not there.
func missingPackages(ctx context.Context, names []string) []string {
	return packagesOf(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return has(ctx, n) })...)
}

// RequireGo refuses a missing or older Go.
func RequireGo(ctx context.Context) error {
	v, err := GoValue(ctx, "GOVERSION")
	if err != nil {
		return run.Refuse("no working go command: "+err.Error(), GoVersion+" or newer in PATH", "see https://go.dev/doc/install")
	}
	if oldest := version.Lang(GoVersion); version.Compare(v, oldest) < 0 {
		return run.Refuse("Go is "+v, oldest+" or newer", "see https://go.dev/doc/install, or set GOTOOLCHAIN="+GoVersion)
	}
	return nil
}

// RequireDisk refuses when less than gib GiB are free for dir, which need not
// exist yet.
func RequireDisk(dir string, gib uint64) error {
	for !exists(dir) {
		dir = filepath.Dir(dir)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := st.Bavail * uint64(st.Bsize) >> 30; free < gib {
		return run.Refuse(fmt.Sprintf("%d GiB free at %s", free, dir),
			fmt.Sprintf("%d GiB or more", gib), "make clean, go clean -cache, or move the checkout or GOCACHE to another disk")
	}
	return nil
}

func exists(p string) bool { _, err := os.Stat(p); return err == nil }
