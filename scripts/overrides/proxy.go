package overrides

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
)

// goModName is the file that makes a folder a module.
const goModName = "go.mod"

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
	// Goproxy is the folder with the module proxy.
	Goproxy string
}

// Write replaces the folder out by one with the module proxy and the lines to paste. The same HEADs give
// the same bytes. revision counts the releases of the series.
func Write(ctx context.Context, modules []Module, revision int, out string, s *run.Step) (Result, error) {
	r := Result{Goproxy: filepath.Join(out, "goproxy")}
	if len(modules) == 0 {
		return r, run.Refuse("the series change no module", "a module to override", "")
	}
	digest, err := digest(ctx, modules, s.Log)
	if err != nil {
		return r, err
	}
	// Written beside out first: a failure leaves no half proxy.
	tmp := out + ".new"
	defer os.RemoveAll(tmp)
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return r, err
	}
	for _, m := range modules {
		o := Override{Module: m, Version: version(m.Version, revision, digest)}
		s.Sayf("%s %s", m.Path, o.Version)
		if err := o.write(ctx, filepath.Join(tmp, "goproxy"), s.Log); err != nil {
			return r, fmt.Errorf("%s: %w", m.Path, err)
		}
		r.Overrides = append(r.Overrides, o)
	}
	for name, content := range map[string]string{replaceFile: r.Replace(), replaceLocalFile: r.ReplaceLocal(), sumFile: r.GoSum()} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(content), 0o644); err != nil {
			return r, err
		}
	}
	return r, errors.Join(os.RemoveAll(out), os.Rename(tmp, out))
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
			return "", run.Refuse("no tree at "+m.Tree, "the tree with the series", "make apply")
		}
		tree, err := repo.Rev(ctx, "HEAD:"+m.Folder)
		if err != nil {
			return "", run.Refuse("HEAD of "+m.Tree+" has no "+m.Folder, "the tree with the series", "make apply")
		}
		fmt.Fprintf(hash, "%s %s\n", m.Path, tree)
	}
	// So many digits that two contents of one revision do not meet.
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// write writes the module in the layout of GOPROXY into the folder goproxy, and fills in its sums.
func (o *Override) write(ctx context.Context, goproxy string, log io.Writer) error {
	repo := gitrepo.Open(o.Tree, log)
	date, err := repo.Output(ctx, "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ") // git's time zone is UTC
	if err != nil {
		return err
	}
	source := goproxy + "-source"
	defer os.RemoveAll(source)
	if err := checkOut(ctx, repo, o.Folder, source); err != nil {
		return err
	}
	goMod, err := publish(filepath.Join(source, goModName), o.Module.Version)
	if err != nil {
		return err
	}
	escaped, err := module.EscapePath(o.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(goproxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(struct{ Version, Time string }{o.Version, date})
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, module.Version{Path: o.Path, Version: o.Version}, source); err != nil {
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

// The files with the lines to paste.
const (
	replaceFile      = "go.mod.replace"
	replaceLocalFile = "go.mod.replace-local"
	sumFile          = "go.sum.add"
)

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
	return "file://" + filepath.ToSlash(r.Goproxy) + "," + others
}
