package verbs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"capacityv2.internal/scripts/release"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/workspace"
)

// provisionerPart is one of the suite provisioner: a benchmark of test-integration/central, and the file that it
// writes.
type provisionerPart struct{ name, benchmark, file string }

var provisionerParts = []provisionerPart{
	{"many nodes", "BenchmarkManyNodes", "manynodes.md"},
	{"watch", "BenchmarkWatchTraffic", "watch.md"},
	{"two schedulers", "BenchmarkTwoSchedulers", "schedulers.md"},
}

// benchProvisioner measures the parts whose name matches, all if only is nil, and writes
// docs/benchmarks/provisioner.md, or, for some of them, a page in the folder of the logs.
func (a *App) benchProvisioner(ctx context.Context, only *regexp.Regexp) error {
	page := filepath.Join(a.benchmarks(), "provisioner.md")
	if only != nil {
		page = filepath.Join(a.WS.Logs(), "provisioner.md")
	}
	version, err := release.ReadVersion(a.WS)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "capacityv2-provisioner")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var names, benchmarks []string
	var parts []provisionerPart
	for _, part := range provisionerParts {
		names = append(names, part.name)
		if cmp.Or(only, everything).MatchString(part.name) {
			parts, benchmarks = append(parts, part), append(benchmarks, part.benchmark)
		}
	}
	if len(parts) == 0 {
		return run.Refuse(fmt.Sprintf("no part matches %q", only), "one of: "+strings.Join(names, "; "), "make bench SUITE=provisioner ONLY='many nodes'")
	}
	return a.do(ctx, "bench", a.apply(a.buildEtcd(),
		run.Task{Name: "build kube-scheduler", Do: func(ctx context.Context, s *run.Step) error {
			return release.BuildComponents(ctx, a.WS, workspace.Kubernetes, s.Log, a.WS.Components(), "kube-scheduler")
		}},
		a.buildStockProvisioner(), a.buildProvisioner(),
		run.Task{Name: "measure", Do: func(ctx context.Context, s *run.Step) error {
			env := []string{"STOCK_CSI_PROVISIONER=" + filepath.Join(a.WS.StockComponents(), provisionerProgram), "PROVISIONER_REPORT=" + folder}
			return a.integration(ctx, s, env, "-run", "^$",
				"-bench", "^("+strings.Join(benchmarks, "|")+")$", "-benchtime", "1x", "-timeout", "2h", "./central")
		}},
		run.Task{Name: "write the page", Do: func(_ context.Context, s *run.Step) error {
			s.Sayf("writing %s", page)
			text := fmt.Sprintf(provisionerHead, version, runtime.Version(), runtime.NumCPU())
			for _, part := range parts {
				measured, err := os.ReadFile(filepath.Join(folder, part.file))
				if err != nil {
					return err
				}
				text += string(measured)
			}
			return os.WriteFile(page, []byte(text), 0o644)
		}},
	)...)
}

// provisionerHead begins the page. It says which versions were measured.
const provisionerHead = `# One provisioner for many nodes, its watchers, and two schedulers

Written by ` + "`make bench SUITE=provisioner`" + `, in one run: %s, %s, %d cores. A real external-provisioner
publishes the capacity of all nodes for a driver with one controller. API server, controllers and schedulers are real
too, and there are no kubelets. All run on one machine.

- ` + "`stock`" + ` is external-provisioner as released.
- ` + "`patched`" + ` publishes pools.
- ` + "`patched, confirms`" + ` also has ` + "`--capacity-confirmation`" + `.
`
