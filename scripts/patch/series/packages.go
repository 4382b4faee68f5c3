// SPDX-License-Identifier: Apache-2.0

package series

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Packages returns the Go packages of the tree at dir that the files at paths
// belong to, as ./relative patterns, sorted, each once. A file in a folder
// without Go files (testdata, a YAML list) belongs to the nearest package above.
func Packages(dir string, paths []string) []string {
	seen := map[string]bool{}
	for _, p := range paths {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if strings.Contains(d+"/", "/testdata/") {
				continue
			}
			if goFiles, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(d), "*.go")); err == nil && len(goFiles) > 0 {
				seen["./"+d] = true
				break
			}
			// A deleted package is none.
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(d))); err != nil {
				break
			}
		}
	}
	var pkgs []string
	for p := range seen {
		pkgs = append(pkgs, p)
	}
	slices.Sort(pkgs)
	return pkgs
}

// SplitSuites separates packages with unit tests from upstream's integration
// suites, which need etcd and have a step of their own.
func SplitSuites(pkgs []string) (unit, suites []string) {
	for _, pkg := range pkgs {
		if strings.HasPrefix(pkg, "./test/integration/") {
			suites = append(suites, pkg)
		} else {
			unit = append(unit, pkg)
		}
	}
	return unit, suites
}
