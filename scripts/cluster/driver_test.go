// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

func TestCheckDriver(t *testing.T) {
	for driver, refuse := range map[string]bool{"": false, "reference": false, "hostpath": true} {
		if err := checkDriver(driver); run.IsRefusal(err) != refuse {
			t.Errorf("DRIVER=%s: %v, want a refusal: %t", driver, err, refuse)
		}
	}
	for mode, refuse := range map[local.Mode]bool{local.ModeFull: false, local.ModeControlPlane: true} {
		if err := checkDriverMode(mode); run.IsRefusal(err) != refuse {
			t.Errorf("in the mode %s: %v, want a refusal: %t", mode, err, refuse)
		}
	}
}

// TestDynamicPrograms runs the programs of the driver's image with nothing but their files.
func TestDynamicPrograms(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	programs := []string{"mke2fs", "losetup"}
	files, err := DynamicPrograms(t.Context(), &run.Step{Log: io.Discard}, programs...)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for at, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, at)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, at), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range programs {
		cmd := exec.Command("/bin/"+program, "-V")
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
}

// TestDriverManifests sees that a stock provisioner, which ends with flags that it does not know, gets none of ours.
func TestDriverManifests(t *testing.T) {
	dir := filepath.Join("..", "..", "test-e2e", "driver", "deploy")
	patched, err := driverManifests(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	stock, err := driverManifests(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(patched, "--capacity-confirmation") || strings.Contains(stock, "confirmation") || strings.Count(stock, "\n") != strings.Count(patched, "\n")-1 {
		t.Errorf("patched:\n%s\nstock:\n%s", patched, stock)
	}
	if _, err := driverManifests(t.TempDir(), true); err == nil {
		t.Error("manifests without the flag, want an error")
	}
}

// TestInstallDriver has a kubectl that notes its arguments: components of the series get all that the driver has, with every
// field checked.
func TestInstallDriver(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	const kubectl = `#!/bin/sh
echo "NO_PROXY=$NO_PROXY $@" >>"$0.called"
if [ "$1" = apply ]; then cat >"$0.applied"; echo DaemonSet/x y; fi
`
	ws := workspace.Workspace{Root: filepath.Join("..", ".."), Work: t.TempDir()}
	for _, c := range []struct {
		components, validate string
		confirms             bool
	}{{ws.Components(), "strict", true}, {ws.StockComponents(), "warn", false}} {
		program, record := filepath.Join(c.components, "kubectl"), filepath.Join(ws.Cluster(), "state.json")
		testtree.Write(t, "", map[string]string{program: kubectl, record: `{"id": "x", "mode": "full", "components": "` + c.components + `"}`})
		ws.Out = t.Output()
		install := func(ctx context.Context, s *run.Step) error { return installDriver(ctx, ws, s) }
		if err := ws.Run(t.Context(), "up", run.Task{Name: "install", Do: install}); err != nil {
			t.Fatal(err)
		}
		called, _ := os.ReadFile(program + ".called")
		applied, _ := os.ReadFile(program + ".applied")
		if n := strings.Count(string(called), "NO_PROXY=* "); n != 2 {
			t.Errorf("%d of two calls go around a proxy: %s", n, called)
		}
		if !strings.Contains(string(called), "--validate="+c.validate+" ") ||
			strings.Contains(string(applied), "--capacity-confirmation") != c.confirms {
			t.Errorf("%s: called with %s, want --validate=%s, and confirmation: %t", c.components, called, c.validate, c.confirms)
		}
	}
}

// TestProvisionerPermissions sees that our manifests let external-provisioner do all that it does with the objects of
// capacity. It gets one only where its cache may be too old.
func TestProvisionerPermissions(t *testing.T) {
	docs := regexp.MustCompile("(?m)^---$")
	for _, path := range []string{"../../test-e2e/driver/deploy/rbac.yaml", "../../docs/examples/my-driver/my-driver.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var verbs []string
		for _, doc := range docs.Split(string(text), -1) {
			var role struct {
				Rules []struct{ Resources, Verbs []string }
			}
			if yaml.Unmarshal([]byte(doc), &role) != nil {
				continue // no role
			}
			for _, r := range role.Rules {
				if slices.Contains(r.Resources, "csistoragecapacities") {
					verbs = append(verbs, r.Verbs...)
				}
			}
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
			if !slices.Contains(verbs, verb) {
				t.Errorf("%s: may %v csistoragecapacities, not %s", path, verbs, verb)
			}
		}
	}
}
