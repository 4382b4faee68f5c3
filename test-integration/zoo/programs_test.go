package zoo

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/clustertest"
	"capacityv2.internal/test-integration/modeldriver"
)

func TestMain(m *testing.M) { apiservertest.Main(m) }

// schedulerConfig has pods tried again soon. Everything else is the default, as are the reservations.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`

// controllers are those for volumes.
const controllers = "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller"

// side is a control plane: the stock one, or that of the series.
type side struct {
	// folder is the variable with the folder of its programs, gates are flags.
	folder string
	gates  []string
	server *apiservertest.Server
}

func newSides() (stock, gate *side) {
	return &side{folder: "STOCK_COMPONENTS"}, &side{folder: "COMPONENTS", gates: []string{"--feature-gates=CSIStorageCapacityV2=true"}}
}

// program returns the path of a program. A missing one fails the test: a skipped test would look
// like a passed one.
func program(tCtx ktesting.TContext, folder, name string) string {
	tCtx.Helper()
	path := filepath.Join(os.Getenv(folder), name)
	if _, err := os.Stat(path); err != nil {
		tCtx.Fatalf("$%s/%s: %v; make test builds it", folder, name, err)
	}
	return path
}

// start starts all programs but the provisioners.
func (s *side) start(tCtx ktesting.TContext) {
	tCtx.Helper()
	// There are no kubelets that take the taint of new nodes away.
	s.server = apiservertest.StartProgram(tCtx, program(tCtx, s.folder, "kube-apiserver"), apiservertest.NewStorage(),
		append(s.gates, "--disable-admission-plugins=TaintNodesByCondition")...)
	if knows, want := s.server.KnowsFields(tCtx), len(s.gates) > 0; knows != want {
		tCtx.Fatalf("the API server in $%s knows the fields of the series: %t, want %t", s.folder, knows, want)
	}
	kubeconfig := apiservertest.Kubeconfig(tCtx, s.server.Config, "")
	config := filepath.Join(tCtx.TempDir(), "scheduler.yaml")
	tCtx.ExpectNoError(os.WriteFile(config, fmt.Appendf(nil, schedulerConfig, kubeconfig), 0o600), "configuration of the scheduler")
	apiservertest.StartComponent(tCtx, program(tCtx, s.folder, "kube-scheduler"), kubeconfig, append(s.gates, "--config="+config)...)
	apiservertest.StartComponent(tCtx, program(tCtx, "COMPONENTS", "kube-controller-manager"), kubeconfig, append(s.gates, "--kubeconfig="+kubeconfig,
		"--leader-elect=false", "--controllers="+controllers, "--pvclaimbinder-sync-period=5s", "--kube-api-qps=1000", "--kube-api-burst=1000")...)
}

// startProvisioner starts external-provisioner beside the driver, on a node or, if that is empty, for all nodes. There are as
// many nodes here for one driver as loads have together, so it may write more often than by default.
func (s *side) startProvisioner(c *clustertest.Cluster, d *modeldriver.Driver, node string, flags ...string) {
	c.Helper()
	c.StartProvisioner(d, node, program(c.TContext.TContext, s.folder, "csi-provisioner"),
		append([]string{"--kube-api-capacity-qps=5", "--kube-api-capacity-burst=5", "--worker-threads=100", "--timeout=1m", "--retry-interval-max=2s"}, flags...)...)
}
