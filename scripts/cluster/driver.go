// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"capacityv2.internal/scripts/build"
	"capacityv2.internal/scripts/cluster/local"
	"capacityv2.internal/scripts/cluster/node"
	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// ReferenceDriver is the only driver that make up installs.
const ReferenceDriver = "reference"

// Programs of the driver's pods, and the references of their images in
// test-e2e/driver/deploy.
const (
	driverProgram    = "reference-driver"
	registrarProgram = "csi-node-driver-registrar"
	driverImage      = "capacityv2.internal/reference-driver:dev"
	registrarImage   = "capacityv2.internal/csi-node-driver-registrar:dev"
	provisionerImage = "capacityv2.internal/csi-provisioner:dev"
	// shellImage is for pods that use volumes.
	shellImage = "capacityv2.internal/busybox:dev"
)

// installTime is how long the driver's pods may take on a slow machine.
const installTime = 3 * time.Minute

// checkDriver refuses an unknown driver.
func checkDriver(driver string) error {
	if driver != "" && driver != ReferenceDriver {
		return run.Refuse("DRIVER="+driver, ReferenceDriver+", or nothing", "make up DRIVER="+ReferenceDriver)
	}
	return nil
}

// checkDriverMode refuses the driver where there are no nodes that its images could get to.
func checkDriverMode(m local.Mode) error {
	if m != local.ModeFull {
		return run.Refuse("DRIVER="+ReferenceDriver+" in the mode "+string(m),
			"nodes, which need root on Linux", "make up DRIVER="+ReferenceDriver+", as root and without CLUSTER_MODE")
	}
	return nil
}

// driverImages are those of the driver's pods and of pods that use its volumes. The
// driver mounts with busybox, and makes volumes with mke2fs and losetup. The provisioner is
// the one in the folder components.
func driverImages(ctx context.Context, ws workspace.Workspace, components string, s *run.Step) ([]node.Image, error) {
	box, shell, err := Busybox(ctx, s)
	if err != nil {
		return nil, err
	}
	files, err := DynamicPrograms(ctx, s, "mke2fs", "losetup")
	if err != nil {
		return nil, err
	}
	files[driverProgram], files["bin/busybox"] = filepath.Join(ws.Components(), driverProgram), box
	return []node.Image{
		{Reference: driverImage, Entrypoint: []string{"/" + driverProgram}, Links: map[string]string{"bin/mount": "busybox", "bin/umount": "busybox"}, Files: files},
		ProgramImage(provisionerImage, build.ProvisionerProgram, components),
		ProgramImage(registrarImage, registrarProgram, ws.Components()),
		{Reference: shellImage, Entrypoint: []string{"/bin/sh"}, Files: map[string]string{"bin/busybox": box}, Links: shell},
	}, nil
}

// ProgramImage is an image with nothing but a program of a folder.
func ProgramImage(reference, name, folder string) node.Image {
	return node.Image{Reference: reference, Entrypoint: []string{"/" + name}, Files: map[string]string{name: filepath.Join(folder, name)}}
}

// DynamicPrograms returns the files of an image that has programs of this machine in bin, with
// the libraries that they load: Debian has no static ones.
func DynamicPrograms(ctx context.Context, s *run.Step, names ...string) (map[string]string, error) {
	if err := toolchain.EnsurePrograms(ctx, s, append(names, "ldd")...); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		program, err := exec.LookPath(name)
		if err != nil {
			return nil, err
		}
		files["bin/"+name] = program
		libraries, err := run.Cmd{Name: "ldd", Args: []string{program}}.Output(ctx)
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Fields(string(libraries)) {
			if filepath.IsAbs(word) {
				files[strings.TrimPrefix(word, "/")] = word
			}
		}
	}
	return files, nil
}

// Busybox returns Debian's static busybox, and the links that make a shell of it in an
// image where it is bin/busybox.
func Busybox(ctx context.Context, s *run.Step) (program string, links map[string]string, err error) {
	if err := toolchain.EnsurePrograms(ctx, s, "busybox"); err != nil {
		return "", nil, err
	}
	if program, err = exec.LookPath("busybox"); err != nil {
		return "", nil, err
	}
	applets, err := run.Cmd{Name: program, Args: []string{"--list"}}.Output(ctx)
	if err != nil {
		return "", nil, err
	}
	links = map[string]string{}
	for _, applet := range strings.Fields(string(applets)) {
		if applet != "busybox" {
			links["bin/"+applet] = "busybox"
		}
	}
	return program, links, nil
}

// buildDriver builds the programs of the images.
func buildDriver(ws workspace.Workspace) run.Task {
	return run.Task{Name: "build the driver and its provisioner", Do: func(ctx context.Context, s *run.Step) error {
		if err := build.Provisioner(ws).Do(ctx, s); err != nil {
			return err
		}
		return toolchain.Build(ctx, ws.EndToEnd(), ws.Components(), s.Log, "./driver/cmd/"+driverProgram, "./mock/"+registrarProgram)
	}}
}

// installDriver applies the manifests of the driver and waits until it runs on all
// nodes. Stock components know nothing of our fields, and a stock provisioner nothing of our flags.
func installDriver(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installTime, fmt.Errorf("the driver is not ready after %s", installTime))
	defer cancel()
	st, err := local.StatusOf(ws)
	if err != nil {
		return err
	}
	kubectl := func(args ...string) run.Cmd {
		return run.Cmd{Name: st.Kubectl(), Env: st.Env(), Log: s.Log, Args: args}
	}
	stock := st.Components == ws.StockComponents()
	manifests, err := driverManifests(filepath.Join(ws.EndToEnd(), "driver", "deploy"), stock)
	if err != nil {
		return err
	}
	validate := "strict"
	if stock {
		validate = "warn"
	}
	apply := kubectl("apply", "--filename", "-", "--validate="+validate, "--output", withPods)
	apply.Stdin = strings.NewReader(manifests)
	applied, err := apply.Output(ctx)
	if err != nil {
		return err
	}
	if len(applied) == 0 {
		return errors.New("kubectl apply printed nothing that has pods")
	}
	for line := range strings.Lines(string(applied)) {
		name, namespace, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), " ")
		if err := kubectl("rollout", "status", name, "--namespace", namespace).Run(ctx); err != nil {
			_ = kubectl("describe", "pods", "--namespace", namespace).Run(context.WithoutCancel(ctx))
			return fmt.Errorf("%s is not ready: %w", name, err)
		}
		s.Sayf("%s is ready", name)
	}
	return nil
}

// withPods prints the DaemonSets and Deployments of a list of objects, with the namespaces that they got.
const withPods = `jsonpath={range .items[?(@.spec.template)]}{.kind}/{.metadata.name} {.metadata.namespace}{"\n"}{end}`

// confirmationFlag is the line of the manifests with the flag of the patched provisioner only.
var confirmationFlag = regexp.MustCompile(`(?m)^ *- --capacity-confirmation\b.*\n`)

// driverManifests returns the manifests in a folder as one file.
func driverManifests(dir string, stock bool) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", err
	}
	var all []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all = append(all, string(content))
	}
	manifests := strings.Join(all, "\n---\n")
	if !confirmationFlag.MatchString(manifests) {
		return "", fmt.Errorf("no manifest in %s has the flag --capacity-confirmation, which a stock provisioner must not get", dir)
	}
	if stock {
		manifests = confirmationFlag.ReplaceAllLiteralString(manifests, "")
	}
	return manifests, nil
}
