package send

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

var author = gitrepo.Person{Name: "Zoë, of SIG Storage", Email: "zoe@example.org"}

// project is one with a series on its tree.
type project struct {
	workspace.Project
	tree    gitrepo.Repo
	patches []series.Patch
}

// newProject has a fix, speed-ups of another file and of lines near the fix, a patch that stands
// on the fix, and a fix that must not be public yet.
func newProject(t *testing.T) project {
	t.Helper()
	root := t.TempDir()
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
	write(t, filepath.Join(root, "patches", "p", workspace.ProjectFile), "title: P\nmodule: example.org/p\n")
	p, err := ws.Project("p")
	if err != nil {
		t.Fatal(err)
	}
	tree := p.Repo(nil)
	write(t, filepath.Join(tree.Dir, "a.go"), lines())
	write(t, filepath.Join(tree.Dir, "b.go"), lines())
	write(t, filepath.Join(tree.Dir, ".github", "PULL_REQUEST_TEMPLATE.md"), "#### What this PR does / why we need it:\n")
	git(t, tree, "init", "--quiet", "--initial-branch="+base.Branch)
	git(t, tree, "add", ".")
	git(t, tree, "commit", "--quiet", "--message=base")
	git(t, tree, "update-ref", base.Ref, "HEAD")
	git(t, tree, "config", "capacityv2.base", "v1 from modules")
	add := func(subject, class, upstream, file, from, to string) {
		t.Helper()
		path := filepath.Join(tree.Dir, file)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.Replace(string(content), from, to, 1))
		git(t, tree, "commit", "--quiet", "--all", "--message", subject+"\n\nOne line ends here,\nand one sentence there. This is another.\n\nKEP: 5925\nClass: "+class+
			"\nUpstream: not-forwarded: "+upstream+"\nDrop-When: the base has it\nProven-By: pkg/a:TestA\n")
	}
	add("a: fix line 05", "fix", "ready", "a.go", "line 05", "line five")
	add("b: read line 05 faster", "perf", "ready", "b.go", "line 05", "line V")
	add("a: read line 08 faster", "perf", "ready", "a.go", "line 08", "line VIII")
	add("a: make more of line five", "feature", "the KEP is not implementable yet", "a.go", "line five", "line fifty-five")
	add("a: mend a crash", "fix", "security process first: anybody can cause it", "a.go", "line 30", "line thirty")
	if _, err := series.Export(t.Context(), tree, p.Series(), "v1"); err != nil {
		t.Fatal(err)
	}
	patches, err := series.Read(p.Series())
	if err != nil {
		t.Fatal(err)
	}
	return project{p, tree, patches}
}

// request is for the patches whose subject matches.
func (p project) request(subject string) Request {
	r := Request{Project: p.Project, Series: p.patches, Author: author}
	for _, patch := range p.patches {
		if regexp.MustCompile(subject).MatchString(patch.Subject) {
			r.Patches = append(r.Patches, patch)
		}
	}
	return r
}

// dir is where the files for a request go.
func (p project) dir(r Request) string {
	return filepath.Join(filepath.Dir(p.tree.Dir), "send", r.Slug())
}

func (p project) send(t *testing.T, r Request) error {
	t.Helper()
	return run.NewReporter(&strings.Builder{}, "send", t.TempDir()).Run(t.Context(), run.Task{Name: "send", Do: func(ctx context.Context, s *run.Step) error {
		return r.Make(ctx, p.dir(r), s)
	}})
}

// state is what a refused request must leave as it is.
func (p project) state(t *testing.T) string {
	t.Helper()
	var state []string
	for _, args := range [][]string{{"for-each-ref"}, {"worktree", "list", "--porcelain"}, {"status", "--porcelain"}, {"config", "--local", "--list"}} {
		state = append(state, output(t, p.tree, args...))
	}
	err := filepath.WalkDir(filepath.Dir(p.tree.Dir), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		state = append(state, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(state, "\n")
}

func TestMake(t *testing.T) {
	const body = "\n\nOne line ends here,\nand one sentence there. This is another.\n"
	for name, c := range map[string]struct {
		pattern, branch string
		embargoOver     bool
		want            []string // messages
	}{
		"a fix":                {"fix line", "send/a-fix-line-05", false, []string{"a: fix line 05" + body}},
		"without what is near": {"a: read", "send/a-read-line-08-faster", false, []string{"a: read line 08 faster" + body}},
		"two":                  {"faster", "send/b-read-line-05-faster", false, []string{"b: read line 05 faster" + body, "a: read line 08 faster" + body}},
		"one and what stands on it": {"five|fix line", "send/a-fix-line-05", false,
			[]string{"a: fix line 05" + body, "a: make more of line five" + body}},
		"what is public now": {"crash", "send/a-mend-a-crash", true, []string{"a: mend a crash" + body}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			before := output(t, p.tree, "rev-parse", "HEAD")
			r := p.request(c.pattern)
			r.EmbargoOver = c.embargoOver
			if err := p.send(t, r); err != nil {
				t.Fatal(err)
			}
			if r.Branch() != c.branch {
				t.Errorf("branch %s, want %s", r.Branch(), c.branch)
			}
			var want strings.Builder
			for _, message := range c.want {
				want.WriteString("Zoë, of SIG Storage <zoe@example.org>, Zoë, of SIG Storage <zoe@example.org>: " + message)
			}
			if got := output(t, p.tree, "log", "--reverse", "--format=%an <%ae>, %cn <%ce>: %B", base.Ref+".."+c.branch); strings.ReplaceAll(got, "\n\nZoë", "\nZoë") != strings.TrimSpace(want.String()) {
				t.Errorf("commits:\n%s\nwant\n%s", got, want.String())
			}
			if after := output(t, p.tree, "rev-parse", "HEAD"); after != before || output(t, p.tree, "status", "--porcelain") != "" || strings.Count(output(t, p.tree, "worktree", "list"), "\n") > 0 {
				t.Error("the applied tree was disturbed, or another work tree is left")
			}

			plain := gitrepo.Open(filepath.Join(t.TempDir(), "plain"), nil)
			git(t, gitrepo.Open(t.TempDir(), nil), "clone", "--quiet", p.tree.Dir, plain.Dir)
			git(t, plain, "reset", "--quiet", "--hard", output(t, p.tree, "rev-parse", base.Ref))
			files, err := filepath.Glob(filepath.Join(p.dir(r), "*.patch"))
			if err != nil || len(files) != len(c.want) {
				t.Fatalf("patch files %q, error %v; want %d", files, err, len(c.want))
			}
			git(t, plain, slices.Concat([]string{"am", "--quiet"}, files)...)
			if got, want := output(t, plain, "rev-parse", "HEAD^{tree}"), output(t, p.tree, "rev-parse", c.branch+"^{tree}"); got != want {
				t.Errorf("after git am on a plain checkout the tree is %s, want that of the branch, %s", got, want)
			}
			if text, err := os.ReadFile(filepath.Join(p.dir(r), "pull-request.md")); err != nil || !strings.Contains(string(text), "One line ends here, and one sentence there.") {
				t.Errorf("the text of the pull request: %q, error %v", text, err)
			}
		})
	}
}

func TestMakeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		prepare func(*testing.T, project)
		want    []string
	}{
		"what stands on another patch": {"make more", nil,
			[]string{"0004-a-make-more-of-line-five.patch conflicts with the base in a.go;", "touch the same: 0001-a-fix-line-05.patch, 0003-a-read-line-08-faster.patch\n", "make send PROJECT=p PATCH='^0001-|^0003-|^0004-'"}},
		"an embargo":                   {"crash", nil, []string{"0005-a-mend-a-crash.patch goes through the security process first", "https://kubernetes.io/", "EMBARGO_OVER=1"}},
		"an embargo of one of several": {"five|crash", nil, []string{"0005-a-mend-a-crash.patch goes"}},
		"a branch of before": {"fix line", func(t *testing.T, p project) { git(t, p.tree, "branch", "send/a-fix-line-05", base.Ref) },
			[]string{"send/a-fix-line-05", "is there already", "FORCE=1"}},
		"a text of before": {"fix line", func(t *testing.T, p project) {
			write(t, filepath.Join(p.dir(p.request("fix line")), "pull-request.md"), "mine\n")
		}, []string{"is there already"}},
		"what the base has": {"fix line", func(t *testing.T, p project) { git(t, p.tree, "update-ref", base.Ref, "HEAD~4") },
			[]string{"the base has the change of 0001-a-fix-line-05.patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			if c.prepare != nil {
				c.prepare(t, p)
			}
			before := p.state(t)
			err := p.send(t, p.request(c.pattern))
			if !run.IsRefusal(err) {
				t.Fatalf("got %v, want a refusal", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the refusal lacks %q:\n%v", want, err)
				}
			}
			if after := p.state(t); after != before {
				t.Errorf("it left\n%s\nafter\n%s", after, before)
			}
		})
	}
}

func TestForce(t *testing.T) {
	p := newProject(t)
	r := p.request("fix line")
	git(t, p.tree, "branch", r.Branch(), base.Ref)
	write(t, filepath.Join(p.dir(r), "0009-old.patch"), "old\n")
	r.Force = true
	if err := p.send(t, r); err != nil {
		t.Fatal(err)
	}
	if n := output(t, p.tree, "rev-list", "--count", base.Ref+".."+r.Branch()); n != "1" {
		t.Errorf("%s commits on the branch, want 1", n)
	}
	if _, err := os.Stat(filepath.Join(p.dir(r), "0009-old.patch")); err == nil {
		t.Error("a file of before is left")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, repo gitrepo.Repo, args ...string) {
	t.Helper()
	if err := repo.Git(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

func output(t *testing.T, repo gitrepo.Repo, args ...string) string {
	t.Helper()
	out, err := repo.Output(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lines is a file of forty distinct lines.
func lines() string {
	var b strings.Builder
	for i := range 40 {
		b.WriteString("// line " + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "\n")
	}
	return b.String()
}
