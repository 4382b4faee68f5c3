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

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/send"
	"capacityv2.internal/scripts/series"
	"capacityv2.internal/scripts/workspace"
)

// sendOptions say which patches to send, and how.
type sendOptions struct {
	patch   *regexp.Regexp
	project string
	send.Request
}

func sendCommand(a *App) *cobra.Command {
	var o sendOptions
	c := verb("send", "Make a branch, files for git am and the text of a pull request of some patches", `
The patches are put on the base alone, without our trailers, and by whom git's configuration
names. One that needs others of the series is refused, and the error names these.`,
		"  capacityv2 send --patch 'fix panics when scoring' --issue 12345", func(ctx context.Context) error { return a.Send(ctx, o) })
	patternFlag(c, &o.patch, "patch", "patches whose subject or file name matches")
	c.Flags().StringVar(&o.project, "project", "", "upstream project, a folder of patches/; needed where patches of more than one match")
	c.Flags().IntVar(&o.Issue, "issue", 0, "number of the issue that they fix")
	c.Flags().BoolVar(&o.Force, "force", false, "replace what was made before")
	c.Flags().BoolVar(&o.EmbargoOver, "embargo-over", false, "send what had to go through the security process first: its fix is public")
	return c
}

// Send makes what a person can send to upstream: commits on the base, on a branch and as files.
func (a *App) Send(ctx context.Context, o sendOptions) error {
	r, err := a.toSend(o)
	if err != nil {
		return err
	}
	if r.Author, err = identity(ctx); err != nil {
		return err
	}
	dir := filepath.Join(a.WS.Work, "send", r.Slug())
	return a.do(ctx, "send", a.apply(
		run.Task{Name: "patch series and feature gates", Do: a.lintSeries},
		run.Task{Name: "branch " + r.Branch(), Do: func(ctx context.Context, s *run.Step) error {
			s.AtEnd("branch: %s in %s\ntext of the pull request, to complete: %s\n", r.Branch(), r.Project.Tree(), filepath.Join(dir, "pull-request.md"))
			s.AtEnd("in your checkout of upstream: git switch --create %s, then git am --3way %s\n", r.Branch(), filepath.Join(dir, "*.patch"))
			return r.Make(ctx, dir, s)
		}},
	)...)
}

// toSend finds the patches. They are of one project, as a pull request is.
func (a *App) toSend(o sendOptions) (send.Request, error) {
	pattern := cmp.Or(o.patch, everything)
	projects, err := a.projects(o.project)
	if err != nil {
		return o.Request, err
	}
	var found []string
	for _, p := range projects {
		all, err := series.Read(p.Series())
		if err != nil {
			return o.Request, err
		}
		matching := slices.DeleteFunc(slices.Clone(all), func(p series.Patch) bool { return !pattern.MatchString(p.Subject) && !pattern.MatchString(p.Name) })
		if len(matching) > 0 {
			found = append(found, p.Name)
			o.Project, o.Series, o.Patches = p, all, matching
		}
	}
	if len(found) != 1 {
		return o.Request, run.Refuse(fmt.Sprintf("patches of %s match %q", cmp.Or(strings.Join(found, " and "), "no project"), pattern),
			"a regular expression for subjects or file names of patches of one project", "make send PROJECT="+workspace.Kubernetes+" PATCH='start tests of volume binding'")
	}
	return o.Request, nil
}
