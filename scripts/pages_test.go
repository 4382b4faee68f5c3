// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// page is a file of Markdown, by its path from the root of the repository.
type page struct {
	path, text string
	// prose is the text without blocks of code, and code is these and what stands between backticks.
	prose string
	code  []string
}

var (
	fence      = regexp.MustCompile("(?ms)^ *(```+)[^\n]*\n(.*?)^ *```+ *$")
	indented   = regexp.MustCompile(`(?m)^(?: {4}|\t)\S.*$`)
	inline     = regexp.MustCompile("`[^`\n]+`")
	heading    = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInID    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	makeOf     = regexp.MustCompile(`\bmake((?: [^\s` + "`" + `#|&;]+)+)`)
	verbName   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	assigned   = regexp.MustCompile(`^([A-Z_]+)=`)
	runbookURL = regexp.MustCompile(`(?m)runbook_url: (\S+)$`)
)

// pages reads all pages of the repository.
func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "_work" || name == "dist" || name == ".git" || name == "patches") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		content, err := os.ReadFile(path)
		p := page{path: filepath.ToSlash(strings.TrimPrefix(path, "../")), text: string(content)}
		for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
			p.code = append(p.code, m[2])
		}
		p.prose = fence.ReplaceAllString(p.text, "")
		p.code = append(p.code, indented.FindAllString(p.prose, -1)...)
		p.code = append(p.code, inline.FindAllString(p.prose, -1)...)
		all[p.path] = p
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("only %d pages: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	return all
}

// anchors are those of the headings.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(p.prose, -1) {
		found[anchor(m[1])] = true
	}
	return found
}

// anchor is that of a heading, as GitHub makes it.
func anchor(heading string) string {
	text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

// resolve says what is wrong with a link of the page in a folder. Those to other places are not looked at.
func resolve(all map[string]page, from, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	path := from
	if file != "" {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(from), file))
		if _, err := os.Stat(filepath.Join("..", path)); err != nil {
			return "no file " + path
		}
	}
	if hasAnchor && !all[path].anchors()[anchor] {
		return path + " has no heading " + anchor
	}
	return ""
}

// TestLinks checks that each link to a file or a heading of ours leads to one.
func TestLinks(t *testing.T) {
	all := pages(t)
	links := 0
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			links++
			if problem := resolve(all, p.path, m[1]); problem != "" {
				t.Errorf("%s: %s: %s", p.path, m[1], problem)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links", links)
	}
	for target, want := range map[string]string{
		"CONTRIBUTING.md": "", "docs/no.md": "no file docs/no.md", "README.md#no-heading": "README.md has no heading no-heading",
	} {
		if got := resolve(all, "README.md", target); got != want {
			t.Errorf("README.md: %s: %q, want %q", target, got, want)
		}
	}
}

// commands says what is wrong with the calls of make in code: verbs and variables that do not exist.
func commands(code []string, verbs, variables map[string]bool) (problems []string) {
	for _, text := range code {
		for _, m := range makeOf.FindAllStringSubmatch(text, -1) {
			hasVerbs := true // until a variable or a word of another kind comes
			for _, word := range strings.Fields(m[1]) {
				word = strings.Trim(word, "'\".,:)")
				a := assigned.FindStringSubmatch(word)
				if a != nil && !variables[a[1]] {
					problems = append(problems, "no variable "+a[1]+" in: make"+m[1])
				}
				hasVerbs = hasVerbs && a == nil && verbName.MatchString(word)
				if hasVerbs && !verbs[word] {
					problems = append(problems, "no verb "+word+" in: make"+m[1])
				}
			}
		}
	}
	return problems
}

// TestCommands checks that each verb and each variable of make that a page names exists.
func TestCommands(t *testing.T) {
	verbs, variables := map[string]bool{"help": true}, map[string]bool{"KUBERNETES_SRC": true}
	for _, verb := range root().Commands() {
		verbs[verb.Name()] = !verb.Hidden
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			variables[strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))] = true
		})
	}
	for _, p := range pages(t) {
		for _, problem := range commands(p.code, verbs, variables) {
			t.Errorf("%s: %s", p.path, problem)
		}
	}
	for code, want := range map[string]int{"`make up NODES=3`": 0, "make send ONLY='x'": 1, "`make bench SUITE=chain`": 1, "make test verify": 0, "make test prove": 1} {
		if got := commands([]string{code}, verbs, variables); len(got) != want {
			t.Errorf("%s: %q, want %d problems", code, got, want)
		}
	}
}

// TestRunbooks checks that each alert leads to a section of a page, by its path from the root.
func TestRunbooks(t *testing.T) {
	all := pages(t)
	rules, err := os.ReadFile("../docs/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := strings.Split(string(rules), "- alert: ")[1:]
	for _, alert := range alerts {
		name, _, _ := strings.Cut(alert, "\n")
		url := runbookURL.FindStringSubmatch(alert)
		if url == nil || !strings.Contains(url[1], "#") {
			t.Errorf("%s has no runbook_url with a section", name)
		} else if problem := resolve(all, "README.md", url[1]); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
	if len(alerts) < 7 {
		t.Errorf("%d alerts", len(alerts))
	}
}

// TestVersions checks that each page of docs begins with the version of Kubernetes that it is for.
func TestVersions(t *testing.T) {
	pin, err := os.ReadFile("pins/kubernetes/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`k8s\.io/kubernetes (v\S+)`).FindSubmatch(pin)[1]
	for _, p := range pages(t) {
		if !strings.HasPrefix(p.path, "docs/") {
			continue
		}
		lines := strings.SplitN(p.text, "\n", 4)
		if len(lines) < 4 || !strings.HasPrefix(lines[2], "*For Kubernetes "+string(version)+" with the series") {
			t.Errorf("%s does not begin with a title and the version %s", p.path, version)
		}
	}
}
