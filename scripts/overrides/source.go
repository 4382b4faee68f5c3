package overrides

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/zip"

	"capacityv2.internal/scripts/archive"
	"capacityv2.internal/scripts/gitrepo"
)

// goModName is the file that makes a folder a module.
const goModName = "go.mod"

// source holds the files of one module.
type source []zip.File

// readSource returns the files that the tree's HEAD has in folder. Changes in
// the work tree that are in no commit are left out. tmp takes a tarball.
func readSource(ctx context.Context, repo gitrepo.Repo, folder, tmp string) (source, error) {
	tarball := filepath.Join(tmp, "source.tar")
	defer os.Remove(tarball)
	// A tree in place of a commit: git then does not fill in the commit's name
	// where upstream's files have a place for it.
	if err := repo.Git(ctx, "-c", "core.attributesFile="+os.DevNull, "archive", "--format=tar", "-o", tarball, "HEAD:"+folder); err != nil {
		return nil, err
	}
	f, err := os.Open(tarball)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var files source
	err = archive.EachMember(f, func(h *tar.Header, r io.Reader) error {
		if h.Typeflag != tar.TypeReg {
			return nil // a module has no links and no folders
		}
		content, err := io.ReadAll(r)
		files = append(files, &file{name: h.Name, content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	// The order is that of the zip's entries.
	slices.SortFunc(files, func(a, b zip.File) int { return bytes.Compare([]byte(a.Path()), []byte(b.Path())) })
	return files, nil
}

// goMod returns the module's go.mod and puts it into the published form: the
// tree's modules require each other at v0.0.0 in a git checkout of upstream,
// and at version where they come from published modules.
func (s source) goMod(version string) ([]byte, error) {
	i := slices.IndexFunc(s, func(f zip.File) bool { return f.Path() == goModName })
	if i < 0 {
		return nil, errors.New("no go.mod")
	}
	mod := s[i].(*file)
	content, err := published(mod.content, version)
	if err != nil {
		return nil, err
	}
	mod.content = content
	return content, nil
}

// unpublished is the version by which the staging modules require each other in
// a git checkout.
const unpublished = "v0.0.0"

// published returns content unchanged where it has no unpublished requirement.
func published(content []byte, version string) ([]byte, error) {
	f, err := modfile.Parse(goModName, content, nil)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, r := range slices.Clone(f.Require) {
		if r.Mod.Version == unpublished {
			changed = true
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range slices.Clone(f.Replace) {
		if r.New.Version == "" {
			changed = true
			if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	if !changed {
		return content, nil
	}
	f.Cleanup()
	return f.Format()
}

// file is a file of a module, in memory.
type file struct {
	name    string
	content []byte
}

func (f *file) Path() string                 { return f.name }
func (f *file) Lstat() (fs.FileInfo, error)  { return info{f}, nil }
func (f *file) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.content)), nil }

// info says only what packing asks for: a regular file of that size.
type info struct{ f *file }

func (i info) Name() string       { return filepath.Base(i.f.name) }
func (i info) Size() int64        { return int64(len(i.f.content)) }
func (i info) Mode() fs.FileMode  { return 0o644 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
