// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// addLicences adds the licence files of the tree and of the modules that are compiled in, in
// upstream's layout: LICENSES/, with those of other modules below LICENSES/vendor/. The trees
// that are assembled from Go modules lack the latter, so they come from the modules
// themselves, also from those that a go.work takes from the tree of another project.
func addLicences(ctx context.Context, t files.Tree, folder, tree string, mods modules, log io.Writer) error {
	own := filepath.Join(tree, "LICENSES")
	err := t.AddFolder(folder, own)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = addTop(t, folder, tree)
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(own, "vendor")); err == nil {
		return nil
	}
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}
	for m := range mods {
		args = append(args, m.Path)
	}
	out, err := run.Cmd{Dir: tree, Env: toolchain.Env(), Log: log, Name: "go", Args: args}.Output(ctx)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		module, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if within(tree, dir) {
			continue // its licence is the tree's
		}
		found, err := addTop(t, path.Join(folder, "vendor", module), dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", module, err)
		}
		if !found {
			fmt.Fprintf(log, "# %s has no licence file at its top\n", module)
		}
	}
	return nil
}

// addTop adds the licence files at the top of dir to a folder.
func addTop(t files.Tree, folder, dir string) (found bool, err error) {
	entries, err := os.ReadDir(dir)
	for _, f := range entries {
		if f.Type().IsRegular() && licenceFile.MatchString(f.Name()) {
			found = true
			err = errors.Join(err, t.AddFile(path.Join(folder, f.Name()), filepath.Join(dir, f.Name()), files.File))
		}
	}
	return found, err
}

// within reports whether dir is top or below it, whatever links lead there.
func within(top, dir string) bool {
	for _, p := range []*string{&top, &dir} {
		if real, err := filepath.EvalSymlinks(*p); err == nil {
			*p = real
		}
	}
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}
