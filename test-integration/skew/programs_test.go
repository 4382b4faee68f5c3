// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

const (
	apiServer   = "kube-apiserver"
	scheduler   = "kube-scheduler"
	manager     = "kube-controller-manager"
	provisioner = "csi-provisioner"
)

// startServer starts an API server, and checks its kind.
func startServer(tCtx ktesting.TContext, k kind, storage *clustertest.Storage) *clustertest.Server {
	tCtx.Helper()
	// There are no kubelets that take the taint of new nodes away.
	flags := append(k.gates(",MutablePVNodeAffinity=true"), "--disable-admission-plugins=TaintNodesByCondition")
	server := clustertest.StartProgram(tCtx, k.program(tCtx, apiServer), storage, flags...)
	metrics, err := server.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(tCtx)
	tCtx.ExpectNoError(err, "metrics of the API server")
	tCtx.ExpectNoError(k.checkGate(metrics), "API server")
	if knows := server.KnowsFields(tCtx); knows != (k != stock) {
		tCtx.Fatalf("the API server knows the fields: %t, which is not of the kind %q", knows, k)
	}
	return server
}

// startScheduler starts the scheduler, and checks its kind.
func startScheduler(c *clustertest.Cluster, k kind, flags ...string) *clustertest.Process {
	c.Helper()
	kubeconfig := clustertest.Kubeconfig(c.TContext.TContext, c.RESTConfig(), "")
	config := clustertest.WriteSchedulerConfig(c.TContext.TContext, clustertest.SchedulerConfig(kubeconfig))
	return startComponent(c, k, scheduler, kubeconfig, append(flags, "--config="+config)...)
}

// controllers are those for volumes.
const controllers = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,persistentvolume-expander-controller," +
	"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,ephemeral-volume-controller"

// startManager starts the controllers for volumes, and checks their kind.
func startManager(c *clustertest.Cluster, k kind) *clustertest.Process {
	c.Helper()
	kubeconfig := clustertest.Kubeconfig(c.TContext.TContext, c.RESTConfig(), "")
	return startComponent(c, k, manager, kubeconfig, clustertest.ManagerFlags(kubeconfig, controllers)...)
}

// startComponent starts a scheduler or a controller-manager, waits until it serves, and checks its
// kind.
func startComponent(c *clustertest.Cluster, k kind, name, kubeconfig string, flags ...string) *clustertest.Process {
	c.Helper()
	process, address := clustertest.StartComponent(c.TContext.TContext, k.program(c.TContext.TContext, name), kubeconfig, append(k.gates(""), flags...)...)
	metrics, err := clustertest.Get(c, address+"/metrics")
	c.ExpectNoError(err, "metrics of "+name)
	c.ExpectNoError(k.checkGate(metrics), name)
	return process
}

// startProvisioner starts the driver and the provisioner, and checks its kind.
func startProvisioner(c *clustertest.Cluster, k kind, d *modeldriver.Driver) *clustertest.Process {
	c.Helper()
	program := k.program(c.TContext.TContext, provisioner)
	version, err := exec.Command(program, "--version").CombinedOutput()
	c.ExpectNoError(err, "version of the provisioner")
	if ours := strings.Contains(string(version), "+capacityv2."); ours != (k != stock) {
		c.Fatalf("the provisioner is %s, which is not of the kind %q", version, k)
	}
	flags := []string{"--capacity-poll-interval=1s", "--kube-api-capacity-qps=50", "--kube-api-capacity-burst=50", "--retry-interval-max=2s"}
	if k == on {
		flags = append(flags, "--capacity-confirmation")
	}
	return c.StartProvisioner(d, "", program, flags...)
}

// crash is what programs print about their own errors.
var crash = regexp.MustCompile(`(?im)^.*(\bpanic|\bfatal|^F\d{4} ).*$`)

// checkAlive returns an error if a program has ended, or has printed something of a crash.
func checkAlive(name string, p *clustertest.Process) error {
	if err, ended := p.Ended(); ended {
		return fmt.Errorf("%s has ended (%v), want it to run", name, err)
	}
	if line := crash.FindString(p.Output()); line != "" {
		return fmt.Errorf("%s has printed %q", name, line)
	}
	return nil
}
