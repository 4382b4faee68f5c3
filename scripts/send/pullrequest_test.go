package send

import (
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"capacityv2.internal/scripts/series"
)

// The templates are those of Kubernetes and of external-provisioner, shortened.
const (
	kubernetesTemplate = `<!--  Thanks for sending a pull request! -->

#### What type of PR is this?

<!--
/kind bug
-->

#### What this PR does / why we need it:

#### Which issue(s) this PR is related to:
<!--
Fixes #<issue number>
-->

#### Special notes for your reviewer:

#### Does this PR introduce a user-facing change?
` + "```release-note\n\n```" + `

#### Additional documentation e.g., KEPs (Kubernetes Enhancement Proposals), usage docs, etc.:

` + "```docs\n\n```"
	provisionerTemplate = `**What type of PR is this?**
> Uncomment only one ` + "` /kind <>`" + ` line
>
> /kind bug

**Which issue(s) this PR fixes**:
Fixes #

**Does this PR introduce an API-breaking change?**:
` + "```release-note\nnone\n```"
)

func patch(subject, class, provenBy, body string, paths ...string) series.Patch {
	p := series.Patch{Subject: subject, Body: body, Trailers: map[string][]string{"KEP": {"5925"}, "Class": {class}, "Proven-By": {provenBy}}}
	for _, path := range paths {
		p.Files = append(p.Files, &gitdiff.File{NewName: path})
	}
	return p
}

func TestPullRequest(t *testing.T) {
	patches := []series.Patch{
		patch("storage: add a field", "feature", "./pkg/a:TestA/one_b", "Why\nis said.\n\n- one\n- two", "pkg/apis/storage/types.go"),
		patch("storage: generate", "generated", "codegen-drift", "Written.", "pkg/zz_generated.go"),
		patch("storage: test it", "test", "test/integration/a:TestB", "Tested.", "test/integration/a/a_test.go"),
	}
	for name, c := range map[string]struct{ got, want string }{
		"Kubernetes": {pullRequest(kubernetesTemplate, patches, 12), `#### What type of PR is this?

/kind feature
/kind api-change

#### What this PR does / why we need it:

**storage: add a field**

Why is said.

- one
- two

**storage: generate**

Written.

**storage: test it**

Tested.

#### Which issue(s) this PR is related to:

Fixes #12
KEP: https://github.com/kubernetes/enhancements/issues/5925

#### Special notes for your reviewer:

- ` + "`go test ./pkg/a -run '^TestA$/^one_b$'`" + ` fails without "storage: add a field"
- "storage: generate" has what upstream's generators write
- ` + "`make test-integration WHAT=./test/integration/a KUBE_TEST_ARGS='-run ^TestB$'`" + ` is for "storage: test it"; no component changes

#### Does this PR introduce a user-facing change?

` + "```release-note\nstorage: add a field\n```" + `

#### Additional documentation e.g., KEPs (Kubernetes Enhancement Proposals), usage docs, etc.:

` + "```docs\n- [KEP]: https://github.com/kubernetes/enhancements/issues/5925\n```\n\n"},
		"a CSI project": {pullRequest(provisionerTemplate, []series.Patch{patch("capacity: fix", "fix", "./a:TestA", "Why.", "a.go")}, 0), `**What type of PR is this?**

/kind bug

**Which issue(s) this PR fixes**:

N/A

**Does this PR introduce an API-breaking change?**:

` + "```release-note\nNONE\n```\n\n"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, c.got, c.want)
		}
	}
}

func TestKinds(t *testing.T) {
	const kep = "https://github.com/kubernetes/enhancements/issues/5925"
	const api = "staging/src/k8s.io/api/storage/v1/types.go"
	fix := patch("a: fix", "fix", "a:TestA", "", "pkg/a.go")
	test := patch("a: test", "test", "a:TestA", "", "pkg/a_test.go")
	for name, c := range map[string]struct {
		patches        []series.Patch
		kinds, related string
	}{
		"fix":                       {[]series.Patch{fix}, "bug", "Fixes #7"},
		"fix and its test":          {[]series.Patch{fix, test}, "bug", "Fixes #7"},
		"fix of the API":            {[]series.Patch{patch("a: fix", "fix", "a:TestA", "", "pkg/apis/a.go")}, "bug", "Fixes #7"},
		"speed-up":                  {[]series.Patch{patch("a: go", "perf", "a:TestA", "", "pkg/a.go")}, "cleanup", "Fixes #7"},
		"fix and speed-up":          {[]series.Patch{fix, patch("a: go", "perf", "a:TestA", "", "pkg/a.go")}, "bug cleanup", "Fixes #7"},
		"feature":                   {[]series.Patch{patch("a: new", "feature", "a:TestA", "", "pkg/a.go")}, "feature", "Fixes #7\nKEP: " + kep},
		"feature of the API":        {[]series.Patch{patch("a: new", "feature", "a:TestA", "", api)}, "feature api-change", "Fixes #7\nKEP: " + kep},
		"generated":                 {[]series.Patch{patch("a: generate", "generated", "codegen-drift", "", api)}, "feature api-change", "Fixes #7\nKEP: " + kep},
		"test":                      {[]series.Patch{test}, "cleanup", "Fixes #7"},
		"test of a fix that flakes": {[]series.Patch{fix, patch("a: test", "test", "a:TestA", "It flakes.", "pkg/a_test.go")}, "bug", "Fixes #7"},
		"test that flakes":          {[]series.Patch{patch("a: test", "test", "a:TestA", "It flakes.", "pkg/a_test.go")}, "cleanup flake", "#7"},
		"fix of something flakey":   {[]series.Patch{patch("a: fix", "fix", "a:TestA", "Tests flake.", "pkg/a.go")}, "bug", "Fixes #7"},
	} {
		kinds := kindsOf(c.patches)
		if got := strings.Join(kinds, " "); got != c.kinds {
			t.Errorf("%s: kinds %q, want %q", name, got, c.kinds)
		}
		if got, _ := relatedTo(7, kinds, []string{"5925"}); got != c.related {
			t.Errorf("%s: related to %q, want %q", name, got, c.related)
		}
	}
}
