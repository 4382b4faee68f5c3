// SPDX-License-Identifier: Apache-2.0

package drivershapes

import (
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// controllers are those for volumes.
const controllers = "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"

// side is a control plane: the stock one, or that of the series.
type side struct {
	// folder is the variable with the folder of its programs, gates are flags.
	folder string
	gates  []string
	server *clustertest.Server
}

func newSides() (stock, gate *side) {
	return &side{folder: "STOCK_COMPONENTS"}, &side{folder: "COMPONENTS", gates: []string{"--feature-gates=CSIStorageCapacityV2=true"}}
}

// start starts all programs but the provisioners.
func (s *side) start(tCtx ktesting.TContext) {
	tCtx.Helper()
	// There are no kubelets that take the taint of new nodes away.
	s.server = clustertest.StartProgram(tCtx, clustertest.Program(tCtx, s.folder, "kube-apiserver"), clustertest.NewStorage(),
		append(s.gates, "--disable-admission-plugins=TaintNodesByCondition")...)
	if knows, want := s.server.KnowsFields(tCtx), len(s.gates) > 0; knows != want {
		tCtx.Fatalf("the API server in $%s knows the fields of the series: %t, want %t", s.folder, knows, want)
	}
	kubeconfig := clustertest.Kubeconfig(tCtx, s.server.Config, "")
	config := clustertest.WriteSchedulerConfig(tCtx, clustertest.SchedulerConfig(kubeconfig))
	clustertest.StartComponent(tCtx, clustertest.Program(tCtx, s.folder, "kube-scheduler"), kubeconfig, append(s.gates, "--config="+config)...)
	clustertest.StartComponent(tCtx, clustertest.Program(tCtx, "COMPONENTS", "kube-controller-manager"), kubeconfig,
		append(s.gates, clustertest.ManagerFlags(kubeconfig, controllers)...)...)
}

// startProvisioner starts external-provisioner beside the driver, on a node or, if that is empty, for all nodes. There are as
// many nodes here for one driver as loads have together, so it may write more often than by default.
func (s *side) startProvisioner(c *clustertest.Cluster, d *modeldriver.Driver, node string, flags ...string) {
	c.Helper()
	c.StartProvisioner(d, node, clustertest.Program(c.TContext.TContext, s.folder, "csi-provisioner"),
		append([]string{"--kube-api-capacity-qps=5", "--kube-api-capacity-burst=5", "--worker-threads=100", "--timeout=1m", "--retry-interval-max=2s"}, flags...)...)
}
