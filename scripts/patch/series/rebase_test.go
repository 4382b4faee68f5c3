package series

import (
	"context"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/patch/base"
)

// newerBase returns a base with other files for the two patches of [exported].
func newerBase(t *testing.T, files map[string]string) (repo gitrepo.Repo, dir string, patches []Patch) {
	t.Helper()
	old, dir := exported(t)
	patches, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	repo = newTree(t, map[string]string{"pkg/a/a.go": numbered("one"), "pkg/b/b.go": "package b\n"})
	commit(t, repo, "newer base", files)
	git(t, repo, "update-ref", base.Ref, "HEAD")
	git(t, repo, "fetch", "--quiet", old.Dir, "+HEAD:refs/old") // the blobs for 3-way
	return repo, dir, patches
}

// rebase puts patches on a base.
func rebase(t *testing.T, repo gitrepo.Repo, dir string, patches []Patch, forecast bool) (results []Result, err error) {
	t.Helper()
	err = step(t, func(ctx context.Context, s *run.Step) (err error) {
		results, err = Rebase(ctx, repo, dir, patches, forecast, s)
		return err
	})
	return results, err
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
			repo, dir, patches := newerBase(t, tc.files)
			results, err := rebase(t, repo, dir, patches, true)
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
	repo, dir, patches := newerBase(t, map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line 2O", 1)})
	results, err := rebase(t, repo, dir, patches, false)
	wantRefusal(t, err, "conflicts in pkg/a/a.go", "git am --continue")
	if len(results) != 1 || !repo.Applying() {
		t.Errorf("%d results, half-done %t: want the conflict left for a person", len(results), repo.Applying())
	}

	// It goes on after the person has left the patch out.
	git(t, repo, "am", "--skip")
	if !Stopped(t.Context(), repo) {
		t.Error("it is not known that the rebase stopped")
	}
	if rest, err := rest(t.Context(), repo, patches); err != nil || len(rest) != 1 || rest[0].Name != patches[1].Name {
		t.Errorf("%d patches are left, want the second one; %v", len(rest), err)
	}

	// It is interrupted after that.
	if results, err = rebase(t, repo, dir, patches, false); err != nil || len(results) != 1 {
		t.Errorf("%d results, want that of the second patch; %v", len(results), err)
	}
	if rest, err := rest(t.Context(), repo, patches); err != nil || len(rest) != 0 {
		t.Errorf("%d patches are left, want none; %v", len(rest), err)
	}

	// Somebody changes a patch that is there.
	damage(t, dir, patches[0].Name, "Say why", "Say it")
	if patches, err = Read(dir); err != nil {
		t.Fatal(err)
	}
	_, err = rebase(t, repo, dir, patches, false)
	wantRefusal(t, err, "changed since")
}

// TestRebaseInterrupted goes on after an interrupt: a person may have merged or added something since then.
func TestRebaseInterrupted(t *testing.T) {
	conflict := map[string]string{"pkg/a/a.go": strings.Replace(numbered("one"), "line 20", "line 2O", 1)}
	for name, tc := range map[string]struct {
		files    map[string]string
		at       string
		conflict bool
	}{
		"at a conflict":           {conflict, "Failed to merge", true},
		"after a patch":           {map[string]string{"other": "x\n"}, "0002-", false},
		"as the conflict is read": {conflict, "diff --name-only", true},
	} {
		t.Run(name, func(t *testing.T) {
			repo, dir, patches := newerBase(t, tc.files)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			logged := repo
			logged.Log = writer(func(text string) {
				if strings.Contains(text, tc.at) {
					cancel()
				}
			})
			do := func(ctx context.Context, s *run.Step) error {
				_, err := Rebase(ctx, logged, dir, patches, false, s)
				return err
			}
			if err := run.NewReporter(t.Output(), "test", t.TempDir()).Run(ctx, run.Task{Name: "rebase", Do: do}); err == nil || ctx.Err() == nil {
				t.Fatalf("error %v, context %v, want an interrupt", err, ctx.Err())
			}
			if repo.Applying() != tc.conflict {
				t.Fatalf("half-done: %t, want %t", repo.Applying(), tc.conflict)
			}
			if tc.conflict {
				git(t, repo, "checkout", "--quiet", "--theirs", "pkg/a/a.go")
				git(t, repo, "add", "pkg/a/a.go")
				git(t, repo, "am", "--continue")
			}
			if rest, err := rest(t.Context(), repo, patches); err != nil || len(rest) != 1 || !Stopped(t.Context(), repo) {
				t.Errorf("stopped: %t, %d patches are left, want the second one; %v", Stopped(t.Context(), repo), len(rest), err)
			}
		})
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
