package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/archive"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// addLicences adds the licence files of the tree and of the modules that are compiled in, in
// upstream's layout: LICENSES/, with those of other modules below LICENSES/vendor/. The trees
// that are assembled from Go modules lack the latter, so they come from the modules
// themselves, also from those that a go.work takes from the tree of another project.
func addLicences(ctx context.Context, t archive.Tree, folder, tree string, mods modules, log io.Writer) error {
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
	args := []string{"list", "-m", "-json=Path,Dir"}
	for m := range mods {
		args = append(args, m.Path)
	}
	out, err := run.Cmd{Dir: tree, Env: toolchain.Env(), Log: log, Name: "go", Args: args}.Output(ctx)
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var m struct{ Path, Dir string }
		if err := dec.Decode(&m); err != nil {
			return err
		}
		if within(tree, m.Dir) {
			continue // its licence is the tree's
		}
		found, err := addTop(t, path.Join(folder, "vendor", m.Path), m.Dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		if !found {
			fmt.Fprintf(log, "# %s has no licence file at its top\n", m.Path)
		}
	}
	return nil
}

// addTop adds the licence files at the top of dir to a folder.
func addTop(t archive.Tree, folder, dir string) (found bool, err error) {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if f.Type().IsRegular() && licenceFile.MatchString(f.Name()) {
			found = true
			err = errors.Join(err, t.AddFile(path.Join(folder, f.Name()), filepath.Join(dir, f.Name()), archive.File))
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
