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
	Modules []Module
	// Revision counts the releases of the series.
	Revision int
	// Out is the folder to write; what is in it is replaced.
	Out string
}

// Override is one module in the proxy.
type Override struct {
	Module
	// Version is that of the override.
	Version string
	// Sum and GoModSum are the hashes that go.sum wants.
	Sum, GoModSum string
}

// Result is what was written.
type Result struct {
	Overrides []Override

	out string
}

// Proxy is the folder with the module proxy.
func (r Result) Proxy() string { return filepath.Join(r.out, "goproxy") }

// Write writes the module proxy and the lines to paste into the folder Out. The
// same HEAD gives the same bytes.
func Write(ctx context.Context, o Options, s *progress.Step) (Result, error) {
	if len(o.Modules) == 0 {
		return Result{}, progress.Refuse("the series change no module", "a module to override", "")
	}
	digest, err := digest(ctx, o.Modules, s.Log)
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
	made := Result{out: tmp}
	for _, m := range o.Modules {
		override := Override{Module: m, Version: version(m.Version, o.Revision, digest)}
		s.Sayf("%s %s", m.Path, override.Version)
		if err := made.add(ctx, &override, s.Log); err != nil {
			return Result{}, fmt.Errorf("%s: %w", m.Path, err)
		}
		made.Overrides = append(made.Overrides, override)
	}
	result := made
	result.out = o.Out
	if err := result.writeLines(tmp); err != nil {
		return Result{}, err
	}
	if err := os.RemoveAll(o.Out); err != nil {
		return Result{}, err
	}
	return result, os.Rename(tmp, o.Out)
}

// version returns the version of an override.
//
// It is a pre-release of the published version: Go module versions have no
// build metadata. It sorts below the published one, so it is used where a
// replace line asks for it and nowhere else. It ends with a hash of the content,
// because the go command never looks at a version again that it has in its
// cache: new content needs a new version.
func version(published string, revision int, digest string) string {
	// A letter in front: an identifier of digits must not begin with 0.
	return fmt.Sprintf("%s-capacityv2.%d.h%s", published, revision, digest)
}

// digest is a hash of the content of all modules.
func digest(ctx context.Context, modules []Module, log io.Writer) (string, error) {
	hash := sha256.New()
	for _, m := range modules {
		repo := gitrepo.Open(m.Tree, log)
		if !repo.Exists() {
			return "", progress.Refuse("no tree at "+m.Tree, "the tree with the series", "make apply")
		}
		tree, err := repo.Rev(ctx, "HEAD:"+m.Folder)
		if err != nil {
			return "", progress.Refuse("HEAD of "+m.Tree+" has no "+m.Folder, "the tree with the series", "make apply")
		}
		fmt.Fprintf(hash, "%s %s\n", m.Path, tree)
	}
	return hex.EncodeToString(hash.Sum(nil))[:digestLength], nil
}

// headDate is the date of a tree's HEAD.
func headDate(ctx context.Context, repo gitrepo.Repo) (time.Time, error) {
	seconds, err := repo.Output(ctx, "log", "-1", "--format=%cI")
	if err != nil {
		return time.Time{}, err
	}
	date, err := time.Parse(time.RFC3339, seconds)
	if err != nil {
		return time.Time{}, fmt.Errorf("date of HEAD of %s: %w", repo.Dir, err)
	}
	return date.UTC(), nil
}

// add writes one module in the layout of GOPROXY, and fills in its sums.
func (r Result) add(ctx context.Context, o *Override, log io.Writer) error {
	repo := gitrepo.Open(o.Tree, log)
	date, err := headDate(ctx, repo)
	if err != nil {
		return err
	}
	files, err := readSource(ctx, repo, o.Folder, r.out)
	if err != nil {
		return err
	}
	goMod, err := files.goMod(o.Module.Version)
	if err != nil {
		return err
	}
	escaped, err := module.EscapePath(o.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.Proxy(), filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{o.Version, date})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.Create(&packed, module.Version{Path: o.Path, Version: o.Version}, files); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list":              []byte(o.Version + "\n"),
		o.Version + ".info": info,
		o.Version + ".mod":  goMod,
		o.Version + ".zip":  packed.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	if o.Sum, err = dirhash.HashZip(filepath.Join(dir, o.Version+".zip"), dirhash.Hash1); err != nil {
		return err
	}
	o.GoModSum, err = dirhash.Hash1([]string{goModName}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	return err
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
	return r.lines(func(o Override) string { return o.Path + " " + o.Version })
}

// ReplaceLocal returns the lines for a go.mod that takes the modules from the
// tree itself, so that a change of the tree is in the next build.
func (r Result) ReplaceLocal() string {
	return r.lines(func(o Override) string { return filepath.Join(o.Tree, filepath.FromSlash(o.Folder)) })
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
		fmt.Fprintf(&b, "%s %s %s\n%s %s/go.mod %s\n", o.Path, o.Version, o.Sum, o.Path, o.Version, o.GoModSum)
	}
	return b.String()
}

// GOPROXY returns the value that puts the proxy before others, such as the
// user's own list.
func (r Result) GOPROXY(others string) string {
	return "file://" + filepath.ToSlash(r.Proxy()) + "," + others
}
