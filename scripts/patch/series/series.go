// SPDX-License-Identifier: Apache-2.0

// Package series is the patch series: patch files and their order on disk, and
// commits on the base in the tree.
package series

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"capacityv2.internal/scripts/ground/files"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

// ListName is the file with the names of the patches, one a line, in order.
const ListName = "series"

// Patch is one patch file.
type Patch struct {
	Name     string // file name
	Bytes    []byte
	Author   string // name and address, "" if there is none
	Subject  string
	Body     string // without the trailers
	Trailers map[string][]string
	Files    []*gitdiff.File
}

// SHA256 returns the hash of the patch file, in hex.
func (p Patch) SHA256() string {
	h := sha256.Sum256(p.Bytes)
	return hex.EncodeToString(h[:])
}

// Class returns the patch's Class trailer: feature, generated, fix, perf or test.
func (p Patch) Class() string {
	if classes := p.Trailers["Class"]; len(classes) > 0 {
		return classes[0]
	}
	return ""
}

// ProvenBy returns the package and the test that the patch names, "" where generated code is
// compared instead.
func (p Patch) ProvenBy() (pkg, test string) {
	pkg, test, named := strings.Cut(strings.Join(p.Trailers["Proven-By"], ""), ":")
	if !named {
		return "", ""
	}
	return strings.TrimPrefix(pkg, "./"), test
}

// Paths returns every path that the patch touches, once.
func (p Patch) Paths() []string {
	return Paths([]Patch{p})
}

// List reads the order list in dir: one name a line, # starts a comment.
func List(dir string) ([]string, error) {
	path := filepath.Join(dir, ListName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, run.Refuse("no "+path, "the ordered list of the patches", "git checkout -- "+path)
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			names = append(names, line)
		}
	}
	return names, nil
}

// Read reads the listed patches of dir.
func Read(dir string) ([]Patch, error) {
	names, err := List(dir)
	if err != nil {
		return nil, err
	}
	var patches []Patch
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if errors.Is(err, os.ErrNotExist) {
			return nil, run.Refuse("missing patch "+n, "every name in "+filepath.Join(dir, ListName)+" present", "git checkout -- "+filepath.Join(dir, n))
		}
		if err != nil {
			return nil, err
		}
		p, err := Parse(n, b)
		if err != nil {
			return nil, err
		}
		patches = append(patches, p)
	}
	return patches, nil
}

// Parse parses one patch file in git's mail format.
func Parse(name string, b []byte) (Patch, error) {
	malformed := func(reason string) error {
		return run.Refuse("malformed patch "+name+": "+reason,
			"the output of git format-patch", "git checkout -- patches; or, if the tree exports it, git rebase -i there to mend the commit")
	}
	changes, preamble, err := gitdiff.Parse(bytes.NewReader(b))
	if err != nil {
		return Patch{}, malformed(err.Error())
	}
	if len(changes) == 0 {
		return Patch{}, malformed("it changes no file")
	}
	header, err := gitdiff.ParsePatchHeader(preamble)
	switch {
	case err != nil:
		return Patch{}, malformed(err.Error())
	case header.Title == "":
		return Patch{}, malformed("no subject")
	}
	p := Patch{Name: name, Bytes: b, Files: changes, Subject: header.Title}
	if header.Author != nil {
		p.Author = header.Author.String()
	}
	p.Body, p.Trailers, err = splitTrailers(header.Title, header.Body)
	return p, err
}

// splitTrailers returns a commit's message without its trailers, and these, as git
// understands them.
func splitTrailers(subject, body string) (string, map[string][]string, error) {
	message := subject + "\n\n" + strings.TrimSpace(body) + "\n"
	out, err := gitrepo.Filter(context.Background(), message, "interpret-trailers", "--parse", "--no-divider")
	if err != nil {
		return "", nil, err
	}
	trailers := map[string][]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		trailers[key] = append(trailers[key], value)
	}
	body = strings.TrimSpace(body)
	if len(trailers) > 0 {
		body = strings.TrimSpace(body[:strings.LastIndex("\n\n"+body, "\n\n")])
	}
	return body, trailers, nil
}

// Paths returns every path that the patches touch, once, in order of first touch.
func Paths(patches []Patch) []string {
	var all []string
	seen := map[string]bool{"": true}
	for _, p := range patches {
		for _, f := range p.Files {
			for _, name := range []string{f.OldName, f.NewName} {
				if !seen[name] {
					seen[name] = true
					all = append(all, name)
				}
			}
		}
	}
	return all
}

// writeFiles writes the patches and their order into dir, as far as their bytes differ. It returns the names of what it
// wrote.
func writeFiles(dir string, patches []Patch) (changed []string, err error) {
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	list, err := listOf(dir, patchNames(patches))
	if err != nil {
		return nil, err
	}
	for _, p := range append(slices.Clone(patches), Patch{Name: ListName, Bytes: list}) {
		written, err := files.Update(filepath.Join(dir, p.Name), p.Bytes)
		if err != nil {
			return changed, err
		}
		if written {
			changed = append(changed, p.Name)
		}
	}
	return changed, nil
}

const listHeader = "# The order of the patches. Written by make export.\n"

// listOf returns the list of names, with the comments of the list in dir: each stays before the patch that it was
// before, whatever the number of that, or before the next one that there still is.
func listOf(dir string, names []string) ([]byte, error) {
	before, err := os.ReadFile(filepath.Join(dir, ListName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	subjects := map[string]bool{}
	for _, name := range names {
		subjects[subjectOf(name)] = true
	}
	comments := map[string]string{}
	var waiting string
	for line := range strings.Lines(strings.TrimPrefix(string(before), listHeader)) {
		switch name := strings.TrimSpace(line); {
		case strings.HasPrefix(name, "#"):
			waiting += name + "\n"
		case subjects[subjectOf(name)]:
			comments[subjectOf(name)] += waiting
			waiting = ""
		}
	}
	list := listHeader
	for _, name := range names {
		list += comments[subjectOf(name)] + name + "\n"
	}
	return []byte(list + waiting), nil
}

// subjectOf returns the name of a patch file without its number.
func subjectOf(name string) string {
	_, subject, _ := strings.Cut(name, "-")
	return subject
}

func patchNames(patches []Patch) (names []string) {
	for _, p := range patches {
		names = append(names, p.Name)
	}
	return names
}

// patchFiles returns the paths of all patch files in dir, listed or not.
func patchFiles(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*.patch")) }
