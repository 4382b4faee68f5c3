package verbs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   gitrepo.Person
	}{
		"a person":   {"[user]\n\tname = Zoë\n\temail = zoe@example.org\n", gitrepo.Person{Name: "Zoë", Email: "zoe@example.org"}},
		"no address": {"[user]\n\tname = Zoë\n", gitrepo.Person{}},
		"no name":    {"[user]\n\temail = zoe@example.org\n", gitrepo.Person{}},
		"nobody yet": {"", gitrepo.Person{}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(c.config), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Setenv("GIT_CONFIG_GLOBAL", file)
			t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			t.Chdir(t.TempDir())
			got, err := identity(t.Context())
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if refused := c.want.Name == ""; refused != (run.IsRefusal(err) && strings.Contains(err.Error(), "git config --global user.name")) {
				t.Errorf("got the error %v, want one: %t", err, refused)
			}
		})
	}
}

// TestToSend has patches of two projects.
func TestToSend(t *testing.T) {
	a := &App{WS: workspace.Workspace{Root: t.TempDir()}}
	for path, content := range map[string]string{
		"p/project.yaml": "title: P\nmodule: p\n", "p/series": "0001-fix-a.patch\n0002-add-b.patch\n",
		"p/0001-fix-a.patch": mail("a: fix x"), "p/0002-add-b.patch": mail("b: add x"),
		"q/project.yaml": "title: Q\nmodule: q\n", "q/series": "0001-fix-c.patch\n", "q/0001-fix-c.patch": mail("c: fix x"),
	} {
		path = filepath.Join(a.WS.Root, "patches", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ pattern, project, want, refusal string }{
		"by subject":           {"^c: fix", "", "q 0001-fix-c.patch", ""},
		"by file name":         {"^0002", "", "p 0002-add-b.patch", ""},
		"several":              {"a: fix|b: add", "", "p 0001-fix-a.patch 0002-add-b.patch", ""},
		"of two projects":      {"fix x", "", "", `patches of p and q match "fix x"`},
		"of one of both":       {"fix x", "p", "p 0001-fix-a.patch", ""},
		"all of one":           {"", "q", "q 0001-fix-c.patch", ""},
		"none":                 {"d: fix", "", "", "patches of no project match"},
		"none of this project": {"^c: fix", "p", "", "patches of no project match"},
		"an unknown project":   {"fix", "r", "", "unknown project"},
		"all":                  {"", "", "", "patches of p and q match"},
	} {
		t.Run(name, func(t *testing.T) {
			o := sendOptions{project: c.project}
			if c.pattern != "" {
				o.patch = regexp.MustCompile(c.pattern)
			}
			r, err := a.toSend(o)
			if c.refusal != "" {
				if !run.IsRefusal(err) || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("got %v, want a refusal that holds %q", err, c.refusal)
				}
				return
			}
			got := r.Project.Name
			for _, p := range r.Patches {
				got += " " + p.Name
			}
			if err != nil || got != c.want {
				t.Errorf("got %q, error %v, want %q", got, err, c.want)
			}
		})
	}
}

// mail is a small patch file.
func mail(subject string) string {
	return "From: A <a@example.org>\nSubject: [PATCH] " + subject + "\n\nWhy.\n\nKEP: 5925\n---\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
}
