package verbs

import (
	"context"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/suites"
)

// kepTests checks that the tests of docs/kep-tests.yaml are there, those of a tree only if there is one.
// What section does with the table of docs/kep.md is to check it, or to write it.
func (a *App) kepTests(section func(path, by, content string) error) func(context.Context, *run.Step) error {
	return func(_ context.Context, s *run.Step) error {
		docs := filepath.Join(a.WS.Root, "docs")
		tests, err := suites.ReadKEPTests(filepath.Join(docs, "kep-tests.yaml"))
		if err != nil {
			return err
		}
		projects, err := a.WS.Projects()
		if err != nil {
			return err
		}
		roots := map[string]string{"test-integration": a.integrationTests(), "test-e2e": a.endToEndTests()}
		for _, p := range projects {
			if roots[p.Name] = p.Tree(); !p.Repo(nil).Exists() {
				roots[p.Name] = ""
				s.Sayf("tests of %s need its tree (make apply): left out", p.Title)
			}
		}
		if missing := tests.Missing(roots); len(missing) > 0 {
			return run.Refuse("docs/kep-tests.yaml names tests that are not there:\n    "+strings.Join(missing, "\n    "), "folder:TestX/sub, or folder: the text of a spec", "edit the list")
		}
		return section(filepath.Join(docs, "kep.md"), "make export", tests.Table())
	}
}
