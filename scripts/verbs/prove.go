package verbs

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/prove"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

func proveCommand(a *App) *cobra.Command {
	var o ProveOptions
	c := verb("prove", "Check that each patch is needed: the test that its Proven-By names fails without it", `
Patches of class feature, fix and perf are tried; for the others it says why not. Both runs
leave out the later patches. A test that passes without the patch is an error.`, "  capacityv2 prove --patch 0023", func(ctx context.Context) error { return a.Prove(ctx, o) })
	patternFlag(c, &o.Patch, "patch", "only patches whose file name matches")
	c.Flags().StringVar(&o.Since, "since", "", "only patches that differ from those of this commit")
	return c
}

// ProveOptions select patches. The zero value selects all.
type ProveOptions struct {
	// Patch is for names of patch files; nil matches all.
	Patch *regexp.Regexp
	// Since is a commit of this repository: only patches that differ from it.
	Since string
}

// Prove checks that the patches that change a component are needed: without one, the test
// that it names fails.
func (a *App) Prove(ctx context.Context, o ProveOptions) error {
	name := cmp.Or(o.Patch, everything)
	projects, err := a.WS.Projects()
	if err != nil {
		return err
	}
	chosen, proven := 0, 0
	var bad []string
	tasks := a.apply()
	for _, p := range projects {
		patches, err := series.Read(p.Series())
		if err != nil {
			return err
		}
		isLeftOut, err := a.leftOut(ctx, p, name, o.Since)
		if err != nil {
			return err
		}
		cases, others := prove.Cases(patches)
		cases, others = slices.DeleteFunc(cases, isLeftOut), slices.DeleteFunc(others, isLeftOut)
		chosen += len(cases) + len(others)
		if len(others) > 0 {
			tasks = append(tasks, progress.Task{Name: "patches of " + p.Title + " that no test can prove", Do: func(ctx context.Context, s *progress.Step) error {
				for _, c := range others {
					why, err := c.Why(ctx, gitrepo.Open(p.Tree(), s.Log))
					if err != nil {
						return err
					}
					s.Sayf("%s: %s", c.Patch.Name, why)
				}
				return nil
			}})
		}
		if len(cases) == 0 {
			continue
		}
		var prover *prove.Prover
		tasks = append(tasks, progress.Task{Name: "work tree of " + p.Title, Do: func(ctx context.Context, _ *progress.Step) (err error) {
			// Not with the log of this step: the prover outlives it.
			prover, err = prove.NewProver(ctx, gitrepo.Open(p.Tree(), nil), p.Tree()+"-prove", len(patches))
			return err
		}})
		for _, c := range cases {
			tasks = append(tasks, progress.Task{Name: p.Name + " " + c.Patch.Name, Do: func(ctx context.Context, s *progress.Step) error {
				verdict, err := prover.Prove(ctx, c, s)
				if err != nil {
					return err
				}
				line := fmt.Sprintf("%s:%s %s", c.Package, c.Test, verdict)
				if verdict == prove.Missing {
					if from, err := prover.AddedBy(ctx, c); err == nil && from != "" {
						line += fmt.Sprintf("; it comes with %q", from)
					}
				}
				s.Sayf("%s", line)
				if verdict.Proven() {
					proven++
				} else {
					bad = append(bad, fmt.Sprintf("%s %s: %s (log: %s)", p.Name, c.Patch.Name, line, s.LogPath))
				}
				return nil
			}})
		}
	}
	if chosen == 0 && o.Since == "" {
		return progress.Refuse(fmt.Sprintf("no patch matches %q", name), "a regular expression for names of patches", "make prove PATCH=0013")
	}
	r := a.reporter("prove")
	if chosen == 0 {
		r.Printf("prove: no patch has changed since %s\n", o.Since)
		r.Done()
		return nil
	}
	if err := r.Run(ctx, tasks...); err != nil {
		return err
	}
	if len(bad) > 0 {
		return progress.Refuse("not proven:\n    "+strings.Join(bad, "\n    "), "Proven-By names a test that the patch or an earlier one brings, and that fails without the patch",
			"make edit, and amend the commit")
	}
	r.Printf("prove: %d patches are needed\n", proven)
	r.Done()
	return nil
}

// leftOut says which patches of a project the options leave out.
func (a *App) leftOut(ctx context.Context, p workspace.Project, name *regexp.Regexp, since string) (func(prove.Case) bool, error) {
	changed := func(string) bool { return true }
	if since != "" {
		// Not those that have got another number.
		files, err := gitrepo.Open(a.WS.Root, nil).Lines(ctx, "diff", "--name-only", "--diff-filter=AM", "--find-renames=100%", since, "--", p.Series())
		if err != nil {
			return nil, err
		}
		changed = func(patch string) bool {
			return slices.ContainsFunc(files, func(f string) bool { return filepath.Base(f) == patch })
		}
	}
	return func(c prove.Case) bool { return !name.MatchString(c.Patch.Name) || !changed(c.Patch.Name) }, nil
}
