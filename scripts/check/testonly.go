// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/check/integration"
	"capacityv2.internal/scripts/check/upstreamsuites"
	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
	"capacityv2.internal/scripts/patch"
	"capacityv2.internal/scripts/patch/base"
	"capacityv2.internal/scripts/patch/series"
)

// onlyTests is a colon and what go test -run takes, at the end of a pattern for packages, as in Proven-By.
var onlyTests = regexp.MustCompile(`^(.*):(\^?\(?(?:Test|Fuzz|Example).*)$`)

// splitOnly splits a pattern into that for packages and that for their tests, which may be "".
func splitOnly(pattern *regexp.Regexp) (packages *regexp.Regexp, tests string, err error) {
	m := onlyTests.FindStringSubmatch(pattern.String())
	if m == nil {
		return pattern, "", nil
	}
	if packages, err = regexp.Compile(m[1]); err == nil {
		_, err = regexp.Compile(m[2])
	}
	if err != nil {
		err = run.Refuse("ONLY="+pattern.String()+": "+err.Error(), "a regular expression before the colon, and one after it", "go doc regexp/syntax")
	}
	return packages, m[2], err
}

// testOnly tests the packages whose path matches.
func testOnly(ctx context.Context, ws workspace.Workspace, only *regexp.Regexp) error {
	packages, tests, err := splitOnly(only)
	if err != nil {
		return err
	}
	trees, err := treesAsTheyAre(ctx, ws)
	if err != nil {
		return err
	}
	var list []tested
	choose := run.Task{Name: "choose packages", Do: func(ctx context.Context, s *run.Step) (err error) {
		if list, err = testedPackages(ctx, ws, s.Log); err != nil {
			return err
		}
		list, err = selectTested(list, packages)
		for _, p := range list {
			s.Sayf("%s", p.path)
		}
		return err
	}}
	if err := ws.Run(ctx, "test", append(trees, choose)...); err != nil {
		return err
	}
	tasks, err := onlyTasks(ws, list, tests)
	if err != nil {
		return err
	}
	return ws.Run(ctx, "test", tasks...)
}

// treesAsTheyAre makes the trees if one is not there. Where all are, it leaves alone what is not exported yet.
func treesAsTheyAre(ctx context.Context, ws workspace.Workspace) ([]run.Task, error) {
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		if repo := p.Repo(nil); !repo.Exists() || series.EnsureSafe(ctx, repo) == nil {
			continue
		}
		return []run.Task{{Name: "the trees as they are", Do: func(_ context.Context, s *run.Step) error {
			s.Sayf("%s has changes that are not committed, or not exported", p.Tree())
			return nil
		}}}, nil
	}
	return patch.Trees(ws, ""), nil
}

// tested is a package with tests.
type tested struct {
	// path is that below the root or, in a tree, below _work.
	path string
	// project has the package, or is "" for one of ours; pattern is what the go command calls it there.
	project, pattern string
	// suite is whether it is one of upstream's integration suites.
	suite bool
	// module is the folder of our module that has it.
	module string
}

// needsCluster are the folders of test-e2e whose tests need a cluster.
var needsCluster = []string{"api", "demo", "faults", "suite"}

// testedPackages are those of the trees that the series touches, with what is not committed, upstream's suites, and ours.
func testedPackages(ctx context.Context, ws workspace.Workspace, log io.Writer) ([]tested, error) {
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	var all []tested
	for _, p := range projects {
		changed, err := changedPaths(ctx, p.Repo(log))
		if err != nil {
			return nil, err
		}
		packages := append(series.Packages(p.Tree(), changed), p.Dependents...)
		if p.Name == workspace.Kubernetes {
			suites, err := upstreamsuites.All()
			if err != nil {
				return nil, err
			}
			for _, suite := range suites {
				packages = append(packages, suite.Package())
			}
		}
		slices.Sort(packages)
		for _, pattern := range slices.Compact(packages) {
			_, suites := series.SplitSuites([]string{pattern})
			all = append(all, tested{path: p.Name + strings.TrimPrefix(pattern, "."), project: p.Name, pattern: pattern, suite: len(suites) > 0})
		}
	}
	for _, module := range []string{"scripts", "test-integration", "test-e2e"} {
		folders, err := toolchain.TestFolders(ctx, filepath.Join(ws.Root, module), moduleEnv(module), log)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			top, _, _ := strings.Cut(folder, "/")
			if module != filepath.Base(ws.EndToEnd()) || !slices.Contains(needsCluster, top) {
				all = append(all, tested{path: module + "/" + folder, module: module, pattern: "./" + folder})
			}
		}
	}
	return all, nil
}

// changedPaths are the files that differ from the base.
func changedPaths(ctx context.Context, repo gitrepo.Repo) ([]string, error) {
	changed, err := repo.Lines(ctx, "diff", "--name-only", "--no-renames", base.Ref)
	if err != nil {
		return nil, err
	}
	added, err := repo.Lines(ctx, "ls-files", "--others", "--exclude-standard")
	return append(changed, added...), err
}

// selectTested returns those whose path matches. None is refused.
func selectTested(all []tested, pattern *regexp.Regexp) ([]tested, error) {
	some := slices.DeleteFunc(slices.Clone(all), func(p tested) bool { return !pattern.MatchString(p.path) })
	if len(some) > 0 {
		return some, nil
	}
	var tops []string
	for _, p := range all {
		if top, _, _ := strings.Cut(p.path, "/"); !slices.Contains(tops, top) {
			tops = append(tops, top)
		}
	}
	return nil, run.Refuse(fmt.Sprintf("no package matches %q", pattern),
		"a part of the path of one that the series touches, or of ours that needs no cluster, below "+strings.Join(tops, ", "),
		"make test ONLY=plugins/volumebinding, or make e2e ONLY=… for specs")
}

// onlyTasks test packages, after building what these start.
func onlyTasks(ws workspace.Workspace, packages []tested, tests string) ([]run.Task, error) {
	var programs, tasks []run.Task
	add := func(name string, of []tested, do func(ctx context.Context, s *run.Step, out io.Writer, patterns ...string) error) {
		if len(of) == 0 {
			return
		}
		var patterns []string
		for _, p := range of {
			patterns = append(patterns, p.pattern)
		}
		tasks = append(tasks, run.Task{Name: name, Independent: true, Do: func(ctx context.Context, s *run.Step) error {
			var results bytes.Buffer
			if err := do(ctx, s, io.MultiWriter(s.Out, &results), patterns...); err != nil {
				return err
			}
			return refuseNoTests(results.String(), tests)
		}})
	}
	which := func(is func(tested) bool) (some []tested) {
		for _, p := range packages {
			if is(p) {
				some = append(some, p)
			}
		}
		return some
	}
	var runFlag []string
	if tests != "" {
		runFlag = []string{"-v", "-run", tests}
	}
	projects, err := ws.Projects()
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		units := which(func(t tested) bool { return t.project == p.Name && !t.suite })
		add("unit tests of "+p.Title, units, func(ctx context.Context, s *run.Step, out io.Writer, patterns ...string) error {
			args := slices.Concat([]string{"-timeout", "20m"}, runFlag, p.TestArgs)
			_, err := toolchain.UnitTest(ctx, p.Tree(), toolchain.Both, s.Log, out, args, patterns...)
			return err
		})
	}
	for _, module := range []string{"scripts", filepath.Base(ws.EndToEnd())} {
		ours := which(func(t tested) bool { return t.module == module })
		add("tests of "+module, ours, func(ctx context.Context, s *run.Step, out io.Writer, patterns ...string) error {
			args := slices.Concat([]string{"-timeout", "20m"}, runFlag, patterns)
			return toolchain.Test(ctx, filepath.Join(ws.Root, module), moduleEnv(module), s.Log, out, args...)
		})
	}
	if suites := which(func(t tested) bool { return t.suite }); len(suites) > 0 {
		programs = append(programs, build.Tools(ws, "build etcd", toolchain.Etcd))
		tasks = append(tasks, run.Task{Name: "upstream's integration tests, gate off and on", Independent: true, Do: func(ctx context.Context, s *run.Step) error {
			var selected []upstreamsuites.Suite
			for _, p := range suites {
				suite, err := upstreamsuites.Of(p.pattern, tests)
				if err != nil {
					return err
				}
				selected = append(selected, suite)
			}
			return testUpstream(ctx, ws, selected, s)
		}})
	}
	if ours := which(func(t tested) bool { return t.module == filepath.Base(ws.Integration()) }); len(ours) > 0 {
		var folders []string
		for _, p := range ours {
			folders = append(folders, strings.TrimPrefix(p.pattern, "./"))
		}
		programs = append(programs, integration.ProgramsOf(ws, folders...)...)
		add("our integration tests", ours, func(ctx context.Context, s *run.Step, out io.Writer, patterns ...string) error {
			return integration.Test(ctx, ws, s, out, nil, slices.Concat([]string{"-timeout", "1h"}, runFlag, patterns)...)
		})
	}
	return append(programs, tasks...), nil
}

// ran is a package in which a test ran.
var ran = regexp.MustCompile(`(?m)^ok  \t\S+\t(.*)$`)

// refuseNoTests refuses results of go test in which no test matched.
func refuseNoTests(results, tests string) error {
	lines := ran.FindAllStringSubmatch(results, -1)
	if tests == "" || slices.ContainsFunc(lines, func(m []string) bool { return !strings.Contains(m[1], "[no tests to run]") }) {
		return nil
	}
	return run.Refuse(fmt.Sprintf("no test of these packages matches %q", tests),
		"names of tests, as for go test -run", "the same without the colon and what follows it, which runs all")
}
