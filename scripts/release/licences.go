package release

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/pack"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([-._].*)?$`)

// licences returns the licence files of the tree and of the modules that are
// compiled in, in upstream's layout: LICENSES/, with those of other modules
// below LICENSES/vendor/. The trees that are assembled from Go modules lack the
// latter, so they come from the modules themselves, also from those that a go.work
// takes from the tree of another project.
func licences(ctx context.Context, treeDir string, mods []module, log io.Writer) (pack.Tree, error) {
	t := pack.Tree{}
	own := filepath.Join(treeDir, "LICENSES")
	if _, err := os.Stat(own); errors.Is(err, os.ErrNotExist) {
		if _, err := addLicences(t, "LICENSES", treeDir); err != nil {
			return nil, err
		}
	} else if err := t.AddFolder("LICENSES", own); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(own, "vendor")); err == nil {
		return t, nil
	}
	args := []string{"list", "-m", "-json=Path,Dir"}
	for _, m := range mods {
		args = append(args, m.Path)
	}
	out, err := run.Cmd{Dir: treeDir, Env: toolchain.Env(), Log: log, Name: "go", Args: args}.Output(ctx)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var m struct{ Path, Dir string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return t, nil
		} else if err != nil {
			return nil, err
		}
		if within(treeDir, m.Dir) {
			continue // its licence is the tree's
		}
		found, err := addLicences(t, path.Join("LICENSES/vendor", m.Path), m.Dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		if !found {
			fmt.Fprintf(log, "# %s has no licence file at its top\n", m.Path)
		}
	}
}

// addLicences adds the licence files at the top of dir to the folder name.
func addLicences(t pack.Tree, name, dir string) (found bool, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		found = true
		if err := t.AddFile(path.Join(name, f.Name()), filepath.Join(dir, f.Name()), pack.File); err != nil {
			return false, err
		}
	}
	return found, nil
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
