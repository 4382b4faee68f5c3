// SPDX-License-Identifier: Apache-2.0

package base

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
)

// clone copies the tag of the user's checkout to dst, after comparing it with
// the assembled modules, which the checksum database vouches for. The user's
// checkout is only read.
func clone(ctx context.Context, o Options, modules, dst string, s *run.Step) error {
	src := gitrepo.Open(o.Checkout, s.Log)
	if !src.Exists() {
		return run.Refuse("KUBERNETES_SRC="+o.Checkout+" is not the top of a git checkout",
			"a checkout of Kubernetes with the tag "+o.Version, "make apply without KUBERNETES_SRC")
	}
	tag, err := src.Rev(ctx, "refs/tags/"+o.Version+"^{commit}")
	if err != nil {
		return run.Refuse("KUBERNETES_SRC="+o.Checkout+" has no tag "+o.Version, "a checkout of Kubernetes with that tag", "git -C "+o.Checkout+" fetch --tags")
	}
	s.Sayf("comparing the checkout's %s with the modules", o.Version)
	if err := compare(ctx, src, tag, modules, s); err != nil {
		return err
	}
	abs, err := filepath.Abs(o.Checkout)
	if err != nil {
		return err
	}
	err = gitrepo.Open(filepath.Dir(dst), s.Log).GitAll(ctx, []string{"clone", "--quiet", "--no-checkout", abs, dst},
		[]string{"-C", dst, "checkout", "--quiet", "-B", Branch, tag})
	if err != nil {
		return err
	}
	return recordBase(ctx, gitrepo.Open(dst, s.Log), o)
}

// mayDiffer tells the files that are not the same in the published modules and
// in a checkout. A patch may not touch them.
func mayDiffer(path string) bool {
	if path == "Makefile" {
		return true
	}
	rest, ok := strings.CutPrefix(path, "staging/src/k8s.io/")
	if !ok {
		return false
	}
	_, file, _ := strings.Cut(rest, "/")
	// The publishing bot rewrites the first two and adds the others.
	return slices.Contains([]string{"go.mod", "go.sum", "CONTRIBUTING.md", "LICENSE", "code-of-conduct.md"}, file)
}

// compare refuses when a file of the assembled tree is missing from the
// checkout's tag or has other content there.
func compare(ctx context.Context, src gitrepo.Repo, tag, modules string, s *run.Step) error {
	lines, err := src.Lines(ctx, "ls-tree", "-r", "-z", "--full-tree", tag)
	if err != nil {
		return err
	}
	have := map[string]string{} // path -> blob
	for e := range strings.SplitSeq(strings.Join(lines, "\n"), "\x00") {
		meta, path, ok := strings.Cut(e, "\t")
		if f := strings.Fields(meta); ok && len(f) == 3 {
			have[path] = f[2]
		}
	}
	var bad []string
	same := 0
	err = filepath.WalkDir(modules, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(modules, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if mayDiffer(rel) {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		// A checkout stores LF where upstream's attributes ask for it.
		lf := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		switch have[rel] {
		case blob(b), blob(lf):
			same++
		case "":
			bad = append(bad, rel+" (missing)")
		default:
			bad = append(bad, rel)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		more := ""
		if len(bad) > 10 {
			more = fmt.Sprintf(" and %d more", len(bad)-10)
			bad = bad[:10]
		}
		return run.Refuse("the checkout's tag differs from the published modules in: "+strings.Join(bad, ", ")+more,
			"upstream's own tag", "git -C "+src.Dir+" fetch --force --tags <upstream>, or make apply without KUBERNETES_SRC")
	}
	s.Sayf("%d files are the same, %d exist only in the checkout", same, len(have)-same)
	return nil
}

// blob returns git's object name of a file with these bytes.
func blob(b []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(b))
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}
