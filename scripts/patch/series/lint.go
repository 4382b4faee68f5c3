// SPDX-License-Identifier: Apache-2.0

package series

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"capacityv2.internal/scripts/ground/run"
)

// trailers are the required ones, each with the form that is accepted.
var trailers = []struct{ name, form, example string }{
	{"KEP", `^\d+$`, "KEP: 5925"},
	{"Class", `^(feature|generated|fix|perf|test)$`, "Class: feature (or generated, fix, perf, test)"},
	{"Upstream", `^(https://\S+|not-forwarded: .+)$`, "Upstream: https://github.com/kubernetes/kubernetes/pull/N, or Upstream: not-forwarded: reason"},
	{"Drop-When", `.{10,}`, "Drop-When: the base contains a gate named CSIStorageCapacityV2"},
	{"Proven-By", `^(\./)?[\w./-]+:[\w/]+$|^codegen-drift$`, "Proven-By: pkg/apis/storage/validation:TestValidateCSIStorageCapacity, or codegen-drift"},
}

var (
	fileName = regexp.MustCompile(`^\d{4}-[A-Za-z0-9._-]+\.patch$`)
	// generatorCommand is one of upstream's scripts, or what it runs.
	generatorCommand = regexp.MustCompile(`hack/[\w-]+\.sh|go (run|test) |make `)
	sentences        = regexp.MustCompile(`[.!?](\s|$)`)
)

// maxWords and maxColumns limit the message of a patch.
const maxWords, maxColumns = 80, 72

// Rules say what patches may hold.
type Rules struct {
	// Generated reports whether a file is written by a generator.
	Generated func(path string) bool
	// MixGenerated allows such files in any patch.
	MixGenerated bool
}

// Lint checks the series in dir without a source tree. All findings are joined.
func Lint(dir string, rules Rules) error {
	names, err := List(dir)
	if err != nil {
		return err
	}
	var errs []error
	if err := listedIsPresent(dir, names); err != nil {
		errs = append(errs, err)
	}
	if _, err := ReadLock(dir); err != nil {
		errs = append(errs, err)
	}
	var patches []Patch
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n))
		if err != nil {
			continue // reported by listedIsPresent
		}
		p, err := Parse(n, b)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		patches = append(patches, p)
	}
	return errors.Join(append(errs, lintPatches(patches, rules))...)
}

// lintPatches checks what patches say and change.
func lintPatches(patches []Patch, rules Rules) error {
	var errs []error
	for _, p := range patches {
		errs = append(errs, lintPatch(p, rules)...)
		if first := patches[0].Author; p.Author != first {
			errs = append(errs, run.Refuse(fmt.Sprintf("%s: its author is %s", p.Name, p.Author),
				first+", as of the first patch", fmt.Sprintf("git commit --amend --author=%q --no-edit in the tree, then make export", first)))
		}
	}
	return errors.Join(errs...)
}

// listedIsPresent wants each patch file listed once, and each name a file.
func listedIsPresent(dir string, names []string) error {
	var errs []error
	list := filepath.Join(dir, ListName)
	seen := map[string]bool{}
	for i, n := range names {
		if seen[n] {
			errs = append(errs, run.Refuse("duplicate in "+list+": "+n, "every patch once", "git checkout -- "+list+", or remove one of the lines"))
		}
		seen[n] = true
		if !fileName.MatchString(n) {
			errs = append(errs, run.Refuse(fmt.Sprintf("%s: %q is no name of a patch", list, n), "NNNN-subject.patch", "make export"))
		} else if want := fmt.Sprintf("%04d-", i+1); len(errs) == 0 && !strings.HasPrefix(n, want) {
			errs = append(errs, run.Refuse(fmt.Sprintf("%s: %s is patch %d", list, n, i+1), "a name that starts with "+want, "make export"))
		}
		if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
			errs = append(errs, run.Refuse("missing patch "+n, "every name in "+list+" present", "git checkout -- "+filepath.Join(dir, n)))
		}
	}
	present, err := patchFiles(dir)
	for _, path := range present {
		if !seen[filepath.Base(path)] {
			errs = append(errs, notListed(path))
		}
	}
	return errors.Join(append(errs, err)...)
}

// notListed refuses a patch file that is not in the list beside it.
func notListed(path string) error {
	return run.Refuse(path+" is not listed", "its name in "+filepath.Join(filepath.Dir(path), ListName),
		"make export, which removes it if git has it; otherwise git am --3way "+path+" in the tree, or remove it, and then make export")
}

func lintPatch(p Patch, rules Rules) []error {
	var errs []error
	report := func(expected, format string, args ...any) {
		errs = append(errs, run.Refuse(p.Name+": "+fmt.Sprintf(format, args...), expected, "amend the commit in the tree, then make export"))
	}
	for _, t := range trailers {
		v := p.Trailers[t.name]
		if len(v) != 1 || !regexp.MustCompile(t.form).MatchString(v[0]) {
			report(t.example, "trailer %s is %q", t.name, v)
		}
	}
	for name := range p.Trailers {
		if !slices.ContainsFunc(trailers, func(t struct{ name, form, example string }) bool { return t.name == name }) && name != "Signed-off-by" {
			report("KEP, Class, Upstream, Drop-When, Proven-By", "unknown trailer %s", name)
		}
	}
	if n := len(sentences.FindAllString(p.Body, -1)); n < 2 {
		report("a body of at least two sentences that says why", "the body has %d sentences", n)
	}
	if n := len(strings.Fields(p.Body)); n > maxWords {
		report(fmt.Sprintf("at most %d", maxWords), "the body has %d words", n)
	}
	if p.Class() == "generated" && !generatorCommand.MatchString(p.Body) {
		report("the command that made it, such as hack/update-codegen.sh", "the body names no generator")
	}
	for line := range strings.SplitSeq(p.Subject+"\n"+p.Body, "\n") {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			report(fmt.Sprintf("at most %d characters in a line", maxColumns), "%q has %d", line, n)
		}
	}
	for _, f := range p.Files {
		lintFile(f, p.Class(), rules, report)
	}
	return errs
}

// neverTouched are files that a git checkout and the published modules have in
// different forms, or that belong to upstream's dependency tooling.
func neverTouched(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(path, "vendor/") || name == "go.mod" || name == "go.sum" || name == "go.work" || name == "go.work.sum"
}

func lintFile(f *gitdiff.File, class string, rules Rules, report func(expected, format string, args ...any)) {
	path := f.NewName
	if f.IsDelete {
		path = f.OldName
	}
	const gitlink = 0o160000
	switch {
	case neverTouched(path):
		report("no change of vendor/, go.mod, go.sum or go.work", "it touches %s", path)
	case f.OldMode&0o170000 == gitlink || f.NewMode&0o170000 == gitlink:
		report("no gitlinks", "%s is a gitlink", path)
	case f.OldMode != 0 && f.NewMode != 0 && f.OldMode != f.NewMode:
		report("no mode flips", "the mode of %s changes from %o to %o", path, f.OldMode, f.NewMode)
	case f.IsBinary && !strings.Contains(path, "testdata/"):
		report("binary files only below testdata", "%s is binary", path)
	}
	isGenerated := rules.Generated(path) || generatedContent(f)
	switch {
	case isGenerated && class != "generated" && !rules.MixGenerated:
		report("generated files only in patches of Class: generated", "it edits the generated file %s", path)
	case !isGenerated && class == "generated":
		report("only generated files in a patch of Class: generated", "it edits %s", path)
	}
	if isGenerated {
		return // the generators' white space is theirs
	}
	for _, frag := range f.TextFragments {
		n := frag.NewPosition
		for _, line := range frag.Lines {
			if line.Op == gitdiff.OpAdd {
				if fault := whitespaceFault(line.Line, path); fault != "" {
					report("no whitespace errors", "%s:%d has %s", path, n, fault)
				}
			}
			if line.Op != gitdiff.OpDelete {
				n++
			}
		}
	}
}

// whitespaceFault returns the error of an added line, or "".
func whitespaceFault(line, path string) string {
	line = strings.TrimSuffix(line, "\n")
	switch {
	case strings.HasSuffix(line, "\r"):
		return "a carriage return"
	case strings.TrimRight(line, " \t") != line:
		return "trailing blanks"
	case strings.HasSuffix(path, ".go") && strings.HasPrefix(line, " ") && strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], " \t"):
		return "a blank before a tab"
	}
	for _, m := range []string{"<<<<<<< ", ">>>>>>> "} {
		if strings.HasPrefix(line, m) {
			return "a conflict marker"
		}
	}
	return ""
}

// Go's convention (https://go.dev/s/generatedcode), before the package clause: generators hold the line as text.
var generatedHeader = regexp.MustCompile(`(?m)^(// Code generated .* DO NOT EDIT\.\r?$|package )`)

// generatedContent looks for the generators' header among the lines at hand. It serves for files that no rule knows, as
// of a later release.
func generatedContent(f *gitdiff.File) bool {
	if !strings.HasSuffix(f.NewName, ".go") || len(f.TextFragments) == 0 || f.TextFragments[0].NewPosition != 1 {
		return false
	}
	var head strings.Builder
	for _, line := range f.TextFragments[0].Lines {
		if line.Op != gitdiff.OpDelete {
			head.WriteString(line.Line)
		}
	}
	return strings.HasPrefix(generatedHeader.FindString(head.String()), "//")
}
