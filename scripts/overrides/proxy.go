package overrides

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
)

// digestLength is how many hex digits of the content are in a version: enough
// that two contents of one revision do not meet.
const digestLength = 12

// Options say what to write.
type Options struct {
	// Tree is the patched tree. Its HEAD counts, not its work tree.
	Tree string
	// Modules are the paths of the modules to override, see [Modules].
	Modules []string
	// Version is the published version of the staging modules, such as v0.37.1.
	Version string
	// Revision counts the releases of the series on that version.
	Revision int
	// Out is the folder to write; what is in it is replaced.
	Out string
}

// Override is one module in the proxy.
type Override struct {
	Path string
	// Sum and GoModSum are the hashes that go.sum wants.
	Sum, GoModSum string
}

// Result is what was written.
type Result struct {
	// Version is that of every override.
	Version   string
	Overrides []Override

	o Options
}

// Proxy is the folder with the module proxy.
func (r Result) Proxy() string { return filepath.Join(r.o.Out, "goproxy") }

// Write writes the module proxy and the lines to paste into the folder Out. The
// same HEAD gives the same bytes.
func Write(ctx context.Context, o Options, s *progress.Step) (Result, error) {
	repo := gitrepo.Open(o.Tree, s.Log)
	if !repo.Exists() {
		return Result{}, progress.Refuse("no tree at "+o.Tree, "the tree with the series", "make apply")
	}
	if len(o.Modules) == 0 {
		return Result{}, progress.Refuse("the series changes no staging module", "a module to override", "")
	}
	version, date, err := version(ctx, repo, o)
	if err != nil {
		return Result{}, err
	}
	if err := os.MkdirAll(filepath.Dir(o.Out), 0o755); err != nil {
		return Result{}, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(o.Out), "overrides-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return Result{}, err
	}

	// Written beside Out first: a failure leaves no half proxy.
	made := Result{Version: version, o: o}
	made.o.Out = tmp
	for _, path := range o.Modules {
		s.Sayf("%s %s", path, version)
		override, err := made.add(ctx, repo, path, date)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", path, err)
		}
		made.Overrides = append(made.Overrides, override)
	}
	result := made
	result.o.Out = o.Out
	if err := result.writeLines(tmp); err != nil {
		return Result{}, err
	}
	if err := os.RemoveAll(o.Out); err != nil {
		return Result{}, err
	}
	return result, os.Rename(tmp, o.Out)
}

// version returns the version of the overrides, and the date of the tree's HEAD.
//
// It is a pre-release of the published version: Go module versions have no
// build metadata. It sorts below the published one, so it is used where a
// replace line asks for it and nowhere else. It ends with a hash of the content,
// because the go command never looks at a version again that it has in its
// cache: new content needs a new version.
func version(ctx context.Context, repo gitrepo.Repo, o Options) (string, time.Time, error) {
	hash := sha256.New()
	for _, path := range o.Modules {
		tree, err := repo.Rev(ctx, "HEAD:"+stagingDir+path)
		if err != nil {
			return "", time.Time{}, progress.Refuse("the tree's HEAD has no "+stagingDir+path, "the tree with the series", "make apply")
		}
		fmt.Fprintf(hash, "%s %s\n", path, tree)
	}
	seconds, err := repo.Output(ctx, "log", "-1", "--format=%cI")
	if err != nil {
		return "", time.Time{}, err
	}
	date, err := time.Parse(time.RFC3339, seconds)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("date of the tree's HEAD: %w", err)
	}
	digest := hex.EncodeToString(hash.Sum(nil))[:digestLength]
	// A letter in front: an identifier of digits must not begin with 0.
	return fmt.Sprintf("%s-capacityv2.%d.h%s", o.Version, o.Revision, digest), date.UTC(), nil
}

// add writes one module in the layout of GOPROXY.
func (r Result) add(ctx context.Context, repo gitrepo.Repo, path string, date time.Time) (Override, error) {
	files, err := readSource(ctx, repo, stagingDir+path, r.o.Out)
	if err != nil {
		return Override{}, err
	}
	goMod, err := files.goMod(r.o.Version)
	if err != nil {
		return Override{}, err
	}
	escaped, err := module.EscapePath(path)
	if err != nil {
		return Override{}, err
	}
	dir := filepath.Join(r.Proxy(), filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Override{}, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{r.Version, date})
	if err != nil {
		return Override{}, err
	}
	var packed bytes.Buffer
	if err := zip.Create(&packed, module.Version{Path: path, Version: r.Version}, files); err != nil {
		return Override{}, err
	}
	for name, content := range map[string][]byte{
		"list":              []byte(r.Version + "\n"),
		r.Version + ".info": info,
		r.Version + ".mod":  goMod,
		r.Version + ".zip":  packed.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return Override{}, err
		}
	}
	sum, err := dirhash.HashZip(filepath.Join(dir, r.Version+".zip"), dirhash.Hash1)
	if err != nil {
		return Override{}, err
	}
	goModSum, err := dirhash.Hash1([]string{goModName}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	return Override{Path: path, Sum: sum, GoModSum: goModSum}, err
}

// names of the files with the lines to paste.
const (
	replaceFile      = "go.mod.replace"
	replaceLocalFile = "go.mod.replace-local"
	sumFile          = "go.sum.add"
)

// writeLines writes the lines to paste into dir.
func (r Result) writeLines(dir string) error {
	for name, content := range map[string]string{
		replaceFile: r.Replace(), replaceLocalFile: r.ReplaceLocal(), sumFile: r.GoSum(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Replace returns the lines for a go.mod that takes the modules from the proxy.
func (r Result) Replace() string {
	return r.lines(func(o Override) string { return o.Path + " " + r.Version })
}

// ReplaceLocal returns the lines for a go.mod that takes the modules from the
// tree itself, so that a change of the tree is in the next build.
func (r Result) ReplaceLocal() string {
	return r.lines(func(o Override) string {
		return filepath.Join(r.o.Tree, filepath.FromSlash(stagingDir+o.Path))
	})
}

func (r Result) lines(target func(Override) string) string {
	var b strings.Builder
	b.WriteString("replace (\n")
	for _, o := range r.Overrides {
		fmt.Fprintf(&b, "\t%s => %s\n", o.Path, target(o))
	}
	b.WriteString(")\n")
	return b.String()
}

// GoSum returns the lines for the go.sum of a module that uses the proxy. With
// them the go command checks the overrides without the checksum database, which
// does not know them.
func (r Result) GoSum() string {
	var b strings.Builder
	for _, o := range r.Overrides {
		fmt.Fprintf(&b, "%s %s %s\n%s %s/go.mod %s\n", o.Path, r.Version, o.Sum, o.Path, r.Version, o.GoModSum)
	}
	return b.String()
}

// GOPROXY returns the value that puts the proxy before others, such as the
// user's own list.
func (r Result) GOPROXY(others string) string {
	return "file://" + filepath.ToSlash(r.Proxy()) + "," + others
}
