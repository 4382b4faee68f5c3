// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/cluster/machine"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

func TestRefuseSkips(t *testing.T) {
	const skipped = "--- SKIP: TestStory1 (0.00s)\n    --- SKIP: TestStory2/disks (0.00s)\nok  \tapi\t1s\n"
	for name, c := range map[string]struct {
		results string
		asked   local.Options
		refuse  bool
	}{
		"all run":                  {"ok  \tapi\t1s\n", local.Options{}, false},
		"skipped":                  {skipped, local.Options{}, true},
		"skipped in the full mode": {skipped, local.Options{Mode: "full"}, true},
		"without nodes, as asked":  {skipped, local.Options{Mode: "control-plane"}, false},
	} {
		err := refuseSkips(c.results, c.asked)
		if (err != nil) != c.refuse || c.refuse && !strings.Contains(err.Error(), "TestStory1, TestStory2/disks") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAroundProxy: the cluster is on this machine, whatever proxy the user has, who may need it for what go test downloads.
func TestAroundProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	root := t.TempDir()
	testtree.Write(t, filepath.Join(root, "test-e2e"), map[string]string{"go.mod": "module m\n\ngo 1.26\n", "api/a_test.go": `package api

import ("os"; "testing")

func TestEnv(t *testing.T) {
	if got := os.Getenv("KUBECONFIG") + " " + os.Getenv("NO_PROXY") + os.Getenv("no_proxy"); got != "/my k **" {
		t.Error(got)
	}
}
`})
	ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
	st := local.Status{Kubeconfig: "/my k"}
	if err := testCluster(t.Context(), ws, st, nil, t.Output(), t.Output(), "./api"); err != nil {
		t.Error(err)
	}
}

// atFirst does something when the first step begins.
type atFirst struct {
	io.Writer
	do func()
}

func (a atFirst) Write(b []byte) (int, error) {
	a.do()
	return a.Writer.Write(b)
}

// TestOnlyOwnClusterIsEnded: somebody runs make up, in another terminal, while a verb that has found no cluster builds.
// Then the verb fails.
func TestOnlyOwnClusterIsEnded(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()) // nothing can be installed, nor built
	for name, verb := range map[string]func(context.Context, workspace.Workspace) error{
		"e2e": func(ctx context.Context, ws workspace.Workspace) error {
			return endToEnd(ctx, ws, e2eOptions{cluster: local.Options{Mode: string(local.ModeControlPlane)}})
		},
		"faults": faults,
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			ws := workspace.Workspace{Root: root, Work: filepath.Join(root, "_work")}
			gates := []byte("gates: [{name: CSIStorageCapacityV2, enabled: true}]")
			if err := os.WriteFile(filepath.Join(root, workspace.GatesFile), gates, 0o644); err != nil {
				t.Fatal(err)
			}
			record, mark := filepath.Join(ws.Cluster(), "state.json"), "abc-"+name
			cmd := exec.Command(sleep, "60")
			cmd.Env = []string{machine.MarkVariable + "=" + mark}
			appear := sync.OnceFunc(func() {
				content := `{"id": "` + mark + `", "mode": "control-plane", "ready": true}`
				if err := errors.Join(os.MkdirAll(ws.Cluster(), 0o755), os.WriteFile(record, []byte(content), 0o644), cmd.Start()); err != nil {
					t.Error(err)
				}
			})
			ws.Out = atFirst{t.Output(), appear}
			err := verb(t.Context(), ws)
			if _, statErr := os.Stat(record); err == nil || statErr != nil || !machine.Alive(mark) {
				t.Errorf("error %v; the cluster of somebody else lives: %t, its record: %v", err, machine.Alive(mark), statErr)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}
