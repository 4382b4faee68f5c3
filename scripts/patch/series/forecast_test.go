// SPDX-License-Identifier: Apache-2.0

package series

import (
	"context"
	"maps"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// newerBase returns a base with other files for the two patches of [exported].
func newerBase(t *testing.T, files map[string]string) (repo gitrepo.Repo, dir string) {
	t.Helper()
	old, dir := exported(t)
	repo = newTree(t, map[string]string{"pkg/a/a.go": numbered("one"), "pkg/b/b.go": "package b\n"})
	commit(t, repo, "newer base", files)
	git(t, repo, "update-ref", base.Ref, "HEAD")
	git(t, repo, "update-ref", base.ExportedRef, "HEAD")
	git(t, repo, "config", "--local", "capacityv2.base", newer+" from modules")
	git(t, repo, "fetch", "--quiet", old.Dir, "+HEAD:refs/old") // the blobs for 3-way
	return repo, dir
}

const patched = "package b\n\nfunc B() {}\n"

// conflicting is a file that the first patch cannot be applied to.
var conflicting = map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line 2O", 1)}

func TestForecast(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  map[Outcome]int
	}{
		"the same base":        {map[string]string{"other": "x\n"}, map[Outcome]int{Clean: 2}},
		"lines moved":          {map[string]string{"pkg/a/a.go": "// new\n" + numbered("one")}, map[Outcome]int{Fuzz: 1, Clean: 1}},
		"context changed":      {map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 18", "line eighteen", 1)}, map[Outcome]int{Fuzz: 1, Clean: 1}},
		"upstream has a patch": {map[string]string{"pkg/b/b.go": patched}, map[Outcome]int{Clean: 1, Upstream: 1}},
		"conflict":             {conflicting, map[Outcome]int{Conflict: 1, Clean: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, dir := newerBase(t, tc.files)
			var got map[Outcome]int
			err := step(t, func(ctx context.Context, s *run.Step) (err error) { got, err = Forecast(ctx, repo, dir, s); return err })
			if err != nil || !maps.Equal(got, tc.want) || repo.Applying() {
				t.Errorf("outcomes %v, want %v; error %v, half-done: %t", got, tc.want, err, repo.Applying())
			}
		})
	}
}
