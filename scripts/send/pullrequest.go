package send

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/toolchain"
)

var (
	// heading is a line of a template of Kubernetes, or of the CSI projects.
	heading = regexp.MustCompile(`(?m)^(?:#### .+|\*\*.+\*\*:?)$`)
	// wrapped is the end of a line in a paragraph. GitHub would break it there.
	wrapped = regexp.MustCompile(`(\S)\n([^\s*#>|-])`)
	flake   = regexp.MustCompile(`(?i)\bflak`)
	api     = regexp.MustCompile(`(?m)^(pkg/apis|staging/src/k8s\.io/api)/`)
)

// pullRequest has the headings of upstream's template, and below each what the patches say.
func pullRequest(template string, patches []series.Patch, issue int) string {
	var what, proofs, notes []string
	for _, p := range patches {
		if len(patches) > 1 {
			what = append(what, "**"+p.Subject+"**")
		}
		what = append(what, wrapped.ReplaceAllString(p.Body, "$1 $2"))
		proofs = append(proofs, "- "+proof(p))
		if changes(p) {
			notes = append(notes, p.Subject)
		}
	}
	kinds := kindsOf(patches)
	related, docs := relatedTo(issue, kinds, patches[0].Trailers["KEP"])
	var b strings.Builder
	for _, h := range heading.FindAllString(template, -1) {
		b.WriteString(h + "\n\n")
		for _, section := range []struct{ heading, content string }{
			{"What type of PR", "/kind " + strings.Join(kinds, "\n/kind ")},
			{"What this PR does", strings.Join(what, "\n\n")},
			{"Which issue", related},
			{"Special notes", strings.Join(proofs, "\n")},
			{"API-breaking change", "```release-note\nNONE\n```"},
			{"user-facing change", "```release-note\n" + cmp.Or(strings.Join(notes, "\n"), "NONE") + "\n```"},
			{"Additional documentation", "```docs\n" + docs + "\n```"},
		} {
			if strings.Contains(h, section.heading) {
				b.WriteString(section.content + "\n\n")
			}
		}
	}
	return b.String()
}

// changes reports whether a patch changes a component by itself.
func changes(p series.Patch) bool { return p.Class() != "test" && p.Class() != "generated" }

// kindsOf returns upstream's labels. There, speed-ups of the scheduler are cleanups, and so are
// tests. Tests and generated files go with what they belong to.
func kindsOf(patches []series.Patch) []string {
	byClass := map[string]string{"fix": "bug", "feature": "feature", "perf": "cleanup", "generated": "feature", "test": "cleanup"}
	alone := !slices.ContainsFunc(patches, changes)
	var kinds []string
	text := ""
	for _, p := range patches {
		if alone || changes(p) {
			kinds = append(kinds, byClass[p.Class()])
		}
		text += p.Subject + p.Body
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	isFeature := slices.Contains(kinds, "feature")
	switch {
	case isFeature && api.MatchString(strings.Join(series.Paths(patches), "\n")):
		kinds = append(kinds, "api-change")
	case alone && !isFeature && flake.MatchString(text):
		kinds = append(kinds, "flake")
	}
	return kinds
}

// relatedTo returns the links to the issue and, for a feature, the KEP. Upstream keeps the issue of a
// flake open until it is seen to be gone.
func relatedTo(issue int, kinds, kep []string) (related, docs string) {
	if issue > 0 {
		related = fmt.Sprintf("Fixes #%d", issue)
	}
	if slices.Contains(kinds, "flake") {
		related = strings.TrimPrefix(related, "Fixes ")
	}
	if slices.Contains(kinds, "feature") {
		link := "https://github.com/kubernetes/enhancements/issues/" + strings.Join(kep, "")
		related, docs = strings.TrimSpace(related+"\nKEP: "+link), "- [KEP]: "+link
	}
	return cmp.Or(related, "N/A"), docs
}

// proof says how a reviewer sees, in a checkout of upstream, that a patch is needed.
func proof(p series.Patch) string {
	pkg, test := p.ProvenBy()
	command := fmt.Sprintf("`go test ./%s -run '%s'`", pkg, toolchain.RunPattern(test))
	if strings.HasPrefix(pkg, "test/integration/") {
		command = fmt.Sprintf("`make test-integration WHAT=./%s KUBE_TEST_ARGS='-run %s'`", pkg, toolchain.RunPattern(test))
	}
	switch {
	case test == "":
		return fmt.Sprintf("%q has what upstream's generators write", p.Subject)
	case changes(p):
		return fmt.Sprintf("%s fails without %q", command, p.Subject)
	}
	return fmt.Sprintf("%s is for %q; no component changes", command, p.Subject)
}
