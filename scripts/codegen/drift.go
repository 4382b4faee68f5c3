package codegen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"capacityv2.internal/scripts/codegen/generated"
	"capacityv2.internal/scripts/gitrepo"
)

// Limits of the diff for people; the step's log has all of it.
const (
	diffFiles = 20  // files whose changes are shown
	diffLines = 12  // lines per file
	diffWidth = 160 // characters per line
)

// stamp changes whenever a file is written or replaced.
type stamp struct {
	modified time.Time
	file     os.FileInfo // nil in tests
}

// stat stamps the tracked generated files that exist.
func (c *checkout) stat(ctx context.Context) (map[string]stamp, error) {
	out, err := c.repo().Output(ctx, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	stamps := map[string]stamp{}
	for p := range strings.SplitSeq(out, "\x00") {
		if !generated.Path(p) {
			continue
		}
		fi, err := os.Lstat(filepath.Join(c.dir, p))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		stamps[p] = stamp{fi.ModTime(), fi}
	}
	return stamps, nil
}

// written returns the files that exist before and after, but were written in
// between, whether that changed them or not.
func written(before, after map[string]stamp) map[string]bool {
	w := map[string]bool{}
	for p, b := range before {
		if a, ok := after[p]; ok && (!a.modified.Equal(b.modified) || !os.SameFile(a.file, b.file)) {
			w[p] = true
		}
	}
	return w
}

// changes returns the paths that differ from HEAD, and the beginning of each
// difference. The whole diff goes to log.
func (c *checkout) changes(ctx context.Context, log io.Writer) ([]string, string, error) {
	return diffOf(ctx, c.repo(), log, "-c", "core.excludesFile="+c.output("exclude"))
}

// diffOf returns the changed paths of a work tree, and the beginning of the changes.
func diffOf(ctx context.Context, repo gitrepo.Repo, log io.Writer, ignore ...string) ([]string, string, error) {
	paths, err := repo.Dirty(ctx, ignore...)
	if err != nil || len(paths) == 0 {
		return nil, "", err
	}
	// New files have a diff only when git knows of them.
	if err := repo.Git(ctx, append(ignore, "add", "--all", "--intent-to-add", ".")...); err != nil {
		return nil, "", err
	}
	diff, err := repo.Output(ctx, "diff", "--no-color", "--no-ext-diff", "--no-renames", "--unified=1", "HEAD")
	if err != nil {
		return nil, "", err
	}
	if _, err := io.WriteString(log, diff+"\n"); err != nil {
		return nil, "", err
	}
	return paths, shorten(diff), nil
}

// shorten cuts a git diff down to the first lines of the first files.
func shorten(diff string) string {
	var b strings.Builder
	files, lines, inHeader := 0, 0, false
	sc := bufio.NewScanner(strings.NewReader(diff))
	sc.Buffer(nil, len(diff)+1)
	for sc.Scan() {
		l := sc.Text()
		if name, ok := strings.CutPrefix(l, "diff --git a/"); ok {
			files++
			lines, inHeader = 0, true
			name, _, _ = strings.Cut(name, " b/")
			fmt.Fprintf(&b, "  %s\n", name)
			continue
		}
		inHeader = inHeader && !strings.HasPrefix(l, "@@") && !strings.HasPrefix(l, "Binary")
		if files > diffFiles || inHeader {
			continue
		}
		lines++
		switch {
		case lines <= diffLines:
			fmt.Fprintf(&b, "      %s\n", cut(l))
		case lines == diffLines+1:
			b.WriteString("      ...\n")
		}
	}
	return b.String()
}

func cut(l string) string {
	if utf8.RuneCountInString(l) <= diffWidth {
		return l
	}
	return string([]rune(l)[:diffWidth]) + "..."
}
