// SPDX-License-Identifier: Apache-2.0

package codegen

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch/base"
)

// project has a generator for its top, and one for each of two modules.
const project = `title: Test
module: example.org/test
generators:
- {command: [sh, top.sh], outputs: ['(^|/)zz_a\.go$', '(^|/)zz_b\.go$']}
- {command: [sh, gen.sh], modules: [one, two], outputs: ['\.gen$']}
handWritten: ['^pkg/by_hand/']
`

// tree is what both write, as committed.
var tree = map[string]string{
	".gitignore": "/_output\n/vendor\n",
	"top.sh":     "echo a >pkg/zz_a.go\necho b >pkg/zz_b.go\n",
	"one/gen.sh": "echo one >one.gen\n", "two/gen.sh": "echo two >two.gen\n",
	"pkg/types.go": "package pkg\n", "pkg/zz_a.go": "a\n", "pkg/zz_b.go": "b\n", "pkg/by_hand/zz_a.go": "by hand\n",
	"one/one.gen": "one\n", "two/two.gen": "two\n",
}

// fixture has a tree with a base and a commit of the series.
type fixture struct {
	t   *testing.T
	ws  workspace.Workspace
	p   workspace.Project
	git gitrepo.Repo
}

func newFixture(t *testing.T, series map[string]string) *fixture {
	t.Helper()
	f := &fixture{t: t, ws: workspace.Workspace{Root: t.TempDir()}}
	f.ws.Work = filepath.Join(f.ws.Root, "_work")
	testtree.Write(t, f.ws.Root, map[string]string{"patches/test/" + workspace.ProjectFile: project})
	var err error
	f.p, err = f.ws.Project("test")
	f.must(err)
	f.git = f.p.Repo(nil)
	testtree.Commit(t, f.git, "x", tree)
	f.must(f.git.Git(t.Context(), "update-ref", base.Ref, "HEAD"))
	testtree.Commit(t, f.git, "x", series)
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// run does what make verify does, without what upstream's generators need, and returns what it prints.
func (f *fixture) run() (r *Run, out string, err error) {
	var text strings.Builder
	r = NewRun(f.ws, f.p)
	err = run.NewReporter(&text, "codegen", f.ws.Logs()).Run(f.t.Context(), run.Task{Name: "create", Do: r.create},
		run.Task{Name: "generate", Do: r.generate}, run.Task{Name: "compare", Do: r.compare})
	if err == nil {
		err = r.Verify()
	}
	return r, text.String(), err
}

// TestVerify breaks what is generated, and what generates.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		series map[string]string
		out    string
		wants  []string // of the error
	}{
		"up to date":              {map[string]string{"pkg/types.go": "package pkg // x\n"}, "2 generated files written anew, 0 files differ", nil},
		"a module":                {map[string]string{"two/types.go": "package two\n"}, "3 generated files written anew, 0 files differ", nil},
		"edited by hand":          {map[string]string{"pkg/zz_a.go": "edited\n"}, "2 generated files written anew, 1 files differ", []string{"of Test differs", "(1 files)", "pkg/zz_a.go", "make codegen"}},
		"out of date":             {map[string]string{"top.sh": tree["top.sh"] + "echo types >pkg/types.go\n"}, "1 files differ", []string{"pkg/types.go"}},
		"a module, out of date":   {map[string]string{"one/gen.sh": "echo other >one.gen\n"}, "1 files differ", []string{"one/one.gen"}},
		"a file too few":          {map[string]string{"top.sh": tree["top.sh"] + "echo c >pkg/zz_c.go\n"}, "1 files differ", []string{"pkg/zz_c.go"}},
		"a file too many":         {map[string]string{"top.sh": tree["top.sh"] + "rm two/two.gen\n"}, "1 files differ", []string{"two/two.gen"}},
		"the generator fails":     {map[string]string{"top.sh": "exit 7\n"}, "", []string{"sh top.sh: ", "exit status 7"}},
		"it writes nothing":       {map[string]string{"top.sh": ""}, "", []string{"sh top.sh: it ended well but wrote none of its files", "zz_a"}},
		"it writes one":           {map[string]string{"top.sh": "echo a >pkg/zz_a.go\n"}, "", []string{"wrote none of its files", "zz_b"}},
		"a module writes another": {map[string]string{"one/gen.sh": "echo two >../two/two.gen\n"}, "", []string{"one: sh gen.sh: ", "wrote none of its files"}},
		"nothing writes it":       {map[string]string{"new/zz_a.go": "new\n"}, "", []string{"new/zz_a.go is generated, but no generator that ran wrote it"}},
		"by hand, as it should":   {map[string]string{"pkg/by_hand/zz_a.go": "changed\n"}, "0 files differ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, err := newFixture(t, c.series).run()
			if !strings.Contains(out, c.out) || (err == nil) != (c.wants == nil) {
				t.Fatalf("error %v, want %q; printed\n%s", err, c.wants, out)
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
		})
	}
}

func TestCopyBack(t *testing.T) {
	f := newFixture(t, map[string]string{
		"top.sh": "echo new >pkg/zz_a.go\necho b >pkg/zz_b.go\nmkdir -p new && echo a >new/zz_a.go\nrm one/one.gen\nmkdir -p vendor && echo >vendor/x\n", "pkg/types.go": "package pkg // x\n",
	})
	testtree.Write(t, f.p.Tree(), map[string]string{"pkg/zz_b.go": "stale\n"}) // of an earlier run
	r, _, err := f.run()
	if !run.IsRefusal(err) {
		t.Fatalf("differences: %v, want a refusal", err)
	}
	copyBack := func() (string, error) {
		var out strings.Builder
		reporter := run.NewReporter(&out, "codegen", t.TempDir())
		err := reporter.Run(t.Context(), run.Task{Name: "copy back", Do: r.CopyBack})
		reporter.Done()
		return out.String(), err
	}
	changes, err := copyBack()
	if err != nil || !strings.Contains(changes, "3 files changed in "+f.p.Tree()) || !strings.Contains(changes, "new/zz_a.go") {
		t.Errorf("error %v, changes %q", err, changes)
	}
	dirty, err := f.git.Dirty(t.Context())
	if want := []string{"new/zz_a.go", "one/one.gen", "pkg/zz_a.go"}; err != nil || !slices.Equal(dirty, want) {
		t.Errorf("the tree has changes in %q, want %q; error %v", dirty, want, err)
	}
	// A second run goes on top of what the first one has copied.
	if _, _, err := f.run(); err == nil || strings.Contains(err.Error(), "not committed") {
		t.Errorf("a second run: %v", err)
	}
	testtree.Write(t, f.p.Tree(), map[string]string{"pkg/types.go": "by hand\n"})
	if _, _, err := f.run(); !run.IsRefusal(err) || !strings.Contains(err.Error(), "not committed: pkg/types.go\n") {
		t.Errorf("a change by hand: %v, want a refusal", err)
	}
	testtree.Commit(t, f.git, "x", nil)
	if _, err := copyBack(); !run.IsRefusal(err) || !strings.Contains(err.Error(), "moved") {
		t.Errorf("another HEAD: %v, want a refusal", err)
	}
}

func TestPinnedVersion(t *testing.T) {
	r := &Run{dir: t.TempDir()}
	const text = "# X_VERSION=1\nETCD_VERSION=${ETCD_VERSION:-3.7.0}\nPROTOC_VERSION=23.4\nQUOTED=\"1.2.3-rc.1\"\nOTHER=${X}\nPROTOC_VER := 25.2\n"
	if err := write(filepath.Join(r.dir, "file"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]string{
		"ETCD_VERSION": "3.7.0", "PROTOC_VERSION": "23.4", "QUOTED": "1.2.3-rc.1", "PROTOC_VER": "25.2", "OTHER": "", "X_VERSION": "",
	} {
		if got, err := r.pinnedVersion("file", variable); got != want || (err == nil) != (want != "") {
			t.Errorf("%s = %q, %v; want %q", variable, got, err, want)
		}
	}
}

func TestRequireAPIPort(t *testing.T) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", apiPort))
	if err == nil {
		defer l.Close()
	} // else somebody has it already, which serves as well
	if err := requireAPIPort(); !run.IsRefusal(err) || !strings.Contains(err.Error(), "8050") {
		t.Errorf("a port in use: %v, want a refusal", err)
	}
}

// TestSpecProtoc runs the stand-in with a protoc that names its version as the plugins do.
func TestSpecProtoc(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const generated = "// \tprotoc-gen-go v1.36.1\n// \tprotoc        v%s\n// - protoc             v%[1]s\n"
	for name, text := range map[string]string{
		"protoc": "#!/bin/sh\n[ \"$*\" = 'csi.proto -I .' ] && printf '" + strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf(generated, "3.21.12"), "\n", `\n`), "\t", `\t`) + "' >csi/csi.pb.go\n",
		"pinned": fmt.Sprintf(specProtoc, filepath.Join(dir, "protoc"), "25.2"), "csi/x": "",
	} {
		if err := write(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(filepath.Join(dir, "pinned"), "csi.proto", "-I", ".").CombinedOutput()
	got, readErr := os.ReadFile(filepath.Join(dir, "csi", "csi.pb.go"))
	if want := fmt.Sprintf(generated, "4.25.2"); err != nil || readErr != nil || string(got) != want {
		t.Errorf("got %q, errors %v, %v (%s), want %q", got, err, readErr, out, want)
	}
	if left, _ := filepath.Glob("csi/*.old"); left != nil {
		t.Errorf("%q would be in the work tree", left)
	}
}
