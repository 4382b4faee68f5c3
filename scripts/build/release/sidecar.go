// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// sidecar is what a release has of a CSI sidecar with one program: a tarball, with
// the image in it as in the server tarball of Kubernetes.
func sidecar(program string) product {
	return product{
		check:     func(_ context.Context, tree string) error { return checkSidecar(tree, program) },
		variables: func(s Stamp) []string { return []string{"main.version=" + s.GitVersion()} },
		archives: []bundle{{
			name: program, top: program, packages: []string{"cmd/" + program}, full: true,
			images: []imageSource{{
				program: program, repository: imageRegistry + "/sig-storage/" + program,
				files: map[string]string{program: program}, entrypoint: "/" + program,
			}},
		}},
	}
}

// checkSidecar compares the above with the build scripts of the tree, which are the
// same for all sidecars: the linker says nothing of a variable that is gone.
func checkSidecar(tree, program string) error {
	for _, c := range []struct{ file, line string }{
		{"Makefile", "CMDS=" + program},
		{"release-tools/build.make", "IMPORTPATH_LDFLAGS = -X main.version=$(REV)"},
		{"Dockerfile", fmt.Sprintf("ENTRYPOINT [%q]", "/"+program)},
	} {
		path := filepath.Join(tree, c.file)
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("upstream's build scripts: %w", err)
		}
		if !slices.Contains(strings.Split(string(b), "\n"), c.line) {
			return run.Refuse(path+" builds something else", "the line "+c.line, "edit scripts/build/release/sidecar.go")
		}
	}
	return nil
}
