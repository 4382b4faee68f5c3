package series

import (
	"context"
	"strings"
	"testing"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/run"
)

// rebaseOn rebases the two patches of [exported] to a base with other files.
func rebaseOn(t *testing.T, files map[string]string, forecast bool) (gitrepo.Repo, []Result, error) {
	t.Helper()
	old, dir := exported(t)
	patches, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	repo := newTree(t, map[string]string{"pkg/a/a.go": numbered("one"), "pkg/b/b.go": "package b\n"})
	commit(t, repo, "newer base", files)
	git(t, repo, "update-ref", base.Ref, "HEAD")
	git(t, repo, "fetch", "--quiet", old.Dir, "+HEAD:refs/old") // the blobs for 3-way
	var results []Result
	err = step(t, func(ctx context.Context, s *run.Step) error {
		results, err = Rebase(ctx, repo, dir, patches, forecast, s)
		return err
	})
	return repo, results, err
}

func TestRebaseOutcomes(t *testing.T) {
	const patched = "package b\n\nfunc B() {}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  []Outcome
	}{
		"the same base":        {map[string]string{"other": "x\n"}, []Outcome{Clean, Clean}},
		"lines moved":          {map[string]string{"pkg/a/a.go": "// new\n" + numbered("one")}, []Outcome{Fuzz, Clean}},
		"context changed":      {map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 18", "line eighteen", 1)}, []Outcome{Fuzz, Clean}},
		"upstream has a patch": {map[string]string{"pkg/b/b.go": patched}, []Outcome{Clean, Upstream}},
		"conflict":             {map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line 2O", 1)}, []Outcome{Conflict, Clean}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, results, err := rebaseOn(t, tc.files, true)
			if err != nil {
				t.Fatal(err)
			}
			var got []Outcome
			for _, r := range results {
				got = append(got, r.Outcome)
			}
			if len(got) != len(tc.want) || got[0] != tc.want[0] || got[1] != tc.want[1] {
				t.Errorf("outcomes %q, want %q", got, tc.want)
			}
			if repo.Applying() {
				t.Error("a git am is left half-done")
			}
		})
	}
}

func TestRebaseStopsAtAConflict(t *testing.T) {
	repo, results, err := rebaseOn(t, map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line 2O", 1)}, false)
	wantRefusal(t, err, "conflicts in pkg/a/a.go", "git am --continue")
	if len(results) != 1 || !repo.Applying() {
		t.Errorf("%d results, half-done %t: want the conflict left for a person", len(results), repo.Applying())
	}

	// It goes on after the person has left the patch out.
	git(t, repo, "am", "--skip")
	_, dir := exported(t)
	patches, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !Stopped(t.Context(), repo) {
		t.Error("it is not known that the rebase stopped")
	}
	rest := Rest(t.Context(), repo, patches)
	if len(rest) != 1 || rest[0].Name != patches[1].Name {
		t.Errorf("%d patches are left, want the second one", len(rest))
	}

	// It is interrupted after that.
	err = step(t, func(ctx context.Context, s *run.Step) error {
		_, err := Rebase(ctx, repo, dir, rest, false, s)
		return err
	})
	if rest := Rest(t.Context(), repo, patches); err != nil || len(rest) != 0 {
		t.Errorf("%d patches are left, want none; %v", len(rest), err)
	}
}

func TestTaken(t *testing.T) {
	repo := newTree(t, map[string]string{
		"staging/src/k8s.io/api/storage/v1/generated.proto": "optional string podName = 5925;\n",
		"pkg/features/kube_features.go":                     "CSIStorageCapacityV2X featuregate.Feature\n",
	})
	taken, err := Taken(t.Context(), repo, []string{"CSIStorageCapacityV2", "5925"}, []string{"pkg/features/*.go", "staging/src/k8s.io/api/storage/*.proto"})
	if err != nil {
		t.Fatal(err)
	}
	if len(taken) != 1 || !strings.HasPrefix(taken[0], "5925 in ") {
		t.Errorf("taken: %q, want the number alone", taken)
	}
	if taken, err := Taken(t.Context(), repo, []string{"5925"}, []string{"pkg/features/*.go", "csi.proto"}); !run.IsRefusal(err) || !strings.Contains(err.Error(), "csi.proto") {
		t.Errorf("a pattern matches no file: %q, error %v", taken, err)
	}
}
