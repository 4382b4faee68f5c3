package toolchain

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
)

// EnsurePrograms is [RequirePrograms] that helps itself where it may: as root
// on Debian it installs the packages of the missing programs, and says so.
func EnsurePrograms(ctx context.Context, s *progress.Step, names ...string) error {
	missing := missingPackages(names)
	if len(missing) == 0 {
		return nil
	}
	if err := InstallPackages(ctx, s, missing...); err != nil {
		return err
	}
	return RequirePrograms(names...)
}

// InstallPackages installs Debian packages. It refuses, with the line to run,
// without root or apt-get.
func InstallPackages(ctx context.Context, s *progress.Step, packages ...string) error {
	line := "apt-get install --yes --no-install-recommends " + strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return progress.Refuse("missing Debian packages: "+strings.Join(packages, ", "), "all of them installed", "sudo "+line)
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

// missingPackages names the Debian packages of the programs that are not in PATH.
func missingPackages(names []string) []string {
	var packages []string
	for _, n := range names {
		if _, err := exec.LookPath(n); err == nil {
			continue
		}
		if p, ok := debianPackages[n]; ok {
			n = p
		}
		packages = append(packages, n)
	}
	return packages
}
