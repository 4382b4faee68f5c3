package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/workspace"
)

func TestVersionAsOthersReadIt(t *testing.T) {
	v := Version{Base: "v1.37.1", Revision: 3}
	if got, want := v.String(), "v1.37.1+capacityv2.3"; got != want {
		t.Fatalf("version %q, want %q", got, want)
	}
	if got, want := v.ImageTag(), "v1.37.1_capacityv2.3"; got != want {
		t.Errorf("image tag %q, want %q", got, want)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`).MatchString(v.ImageTag()) {
		t.Errorf("%q is no image tag", v.ImageTag())
	}
	ours, base := semver.MustParse(v.String()), semver.MustParse(v.Base)
	if ours.Compare(base) != 0 || ours.Prerelease() != "" {
		t.Errorf("%s does not sort as %s", ours, base)
	}
	suffix := semver.MustParse("v1.37.1-capacityv2.3")
	// Ranges of the kind that charts ask for in kubeVersion.
	for _, r := range []string{">=1.37.0", ">= 1.30.0", "^1.37.0", "~1.37.1", ">=1.25.0 <1.38.0", ">=1.37.0-0", "1.37.x"} {
		c, err := semver.NewConstraint(r)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Check(ours) {
			t.Errorf("%s fails kubeVersion %q", ours, r)
		}
		if r == ">=1.37.0" && c.Check(suffix) {
			t.Errorf("%s passes %q: then a suffix would serve as well", suffix, r)
		}
	}
}

func TestReadVersion(t *testing.T) {
	const pin = "module x\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.37.1\n"
	for name, c := range map[string]struct{ pin, revision, want, err string }{
		"good":               {pin, "2\n", "v1.37.1+capacityv2.2", ""},
		"no revision file":   {pin, "", "", "whole number"},
		"revision zero":      {pin, "0", "", "whole number"},
		"revision is a word": {pin, "two", "", "whole number"},
		"no base":            {"module x\n", "1", "", "requires no k8s.io/kubernetes"},
		"base is no release": {strings.Replace(pin, "v1.37.1", "v1.37.2-0.20260101000000-abcdefabcdef", 1), "1", "", "no release"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := workspace.Workspace{Root: t.TempDir()}
			write(t, filepath.Join(ws.Pin("kubernetes"), "go.mod"), c.pin)
			if c.revision != "" {
				write(t, filepath.Join(ws.Series(), "REVISION"), c.revision)
			}
			v, err := ReadVersion(ws)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
			case err != nil || v.String() != c.want:
				t.Errorf("%s, %v; want %s", v, err, c.want)
			}
		})
	}
}

func TestTreeStamp(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "1")
	commitAll(t, dir)
	v := Version{Base: "v1.37.1", Revision: 1}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	s, err := TreeStamp(t.Context(), dir, v)
	if err != nil {
		t.Fatal(err)
	}
	head, err := gitrepo.Open(dir, nil).Rev(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	flags := s.Ldflags()
	for _, want := range []string{
		"-s -w ",
		"-X k8s.io/component-base/version.gitVersion=v1.37.1+capacityv2.1",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.37.1+capacityv2.1",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/component-base/version.gitTreeState=clean",
		"-X k8s.io/component-base/version.gitCommit=" + head,
		"-X k8s.io/component-base/version.buildDate=" + commitDate,
	} {
		if !strings.Contains(flags+" ", want+" ") && !strings.HasPrefix(flags, want) {
			t.Errorf("no %q in %q", want, flags)
		}
	}

	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	write(t, filepath.Join(dir, "f"), "2")
	if s, err = TreeStamp(t.Context(), dir, v); err != nil {
		t.Fatal(err)
	}
	if want := time.Unix(86400, 0).UTC(); !s.Dirty || !s.Date.Equal(want) || s.GitVersion() != "v1.37.1+capacityv2.1-dirty" {
		t.Errorf("%+v, want a dirty one at %s", s, want)
	}
	if sv := semver.MustParse(s.GitVersion()); sv.Prerelease() != "" {
		t.Errorf("%s is a pre-release", sv)
	}

	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := TreeStamp(t.Context(), dir, v); err == nil {
		t.Error("SOURCE_DATE_EPOCH=yesterday is accepted")
	}
}

const commitDate = "2026-01-02T03:04:05Z"

// commitAll commits everything in dir as the first commit of a repository.
func commitAll(t *testing.T, dir string) {
	t.Helper()
	repo := gitrepo.Open(dir, nil)
	for _, args := range [][]string{{"init", "--quiet", "."}, {"add", "--all"}, {"commit", "--quiet", "-m", "all"}} {
		if err := repo.GitAt(t.Context(), commitDate, args...); err != nil {
			t.Fatal(err)
		}
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
