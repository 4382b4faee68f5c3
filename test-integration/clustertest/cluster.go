package clustertest

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	clientktesting "k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/ktesting"

	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/test/integration/util"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// serverFlags turn off what needs controllers that do not run: taints of new
// nodes, and finalizers of claims.
var serverFlags = []string{"--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection"}

// Cluster is a control plane that runs until the end of its test.
type Cluster struct {
	clientktesting.TContext
	// Namespace is where its pods and claims are.
	Namespace string
}

// Start starts a control plane with the feature gate on.
func Start(tCtx ktesting.TContext) *Cluster {
	tCtx.Helper()
	server := apiservertest.StartGateOn(tCtx, apiservertest.NewStorage(), serverFlags...)

	// The server ends after everything that uses it.
	tCtx = tCtx.WithCancel()
	var running sync.WaitGroup
	tCtx.Cleanup(func() {
		tCtx.Cancel("test is done")
		running.Wait()
	})
	config := server.Config
	config.QPS, config.Burst = 1000, 10000
	c := &Cluster{TContext: clientktesting.WithRESTConfig(tCtx, config), Namespace: "pods"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	_, err := c.Client().CoreV1().Namespaces().Create(c, namespace, metav1.CreateOptions{})
	c.ExpectNoError(err, "create namespace")

	c.startControllers(&running)
	schedulerConfig, err := latest.Default()
	c.ExpectNoError(err, "default configuration of the scheduler")
	_, _, done := util.StartSchedulerWithDone(c.TContext, schedulerConfig, nil)
	running.Go(func() { <-done })
	return c
}

// startControllers starts what binds claims to volumes, and what creates the
// claims of generic ephemeral volumes.
func (c *Cluster) startControllers(running *sync.WaitGroup) {
	c.Helper()
	factory := informers.NewSharedInformerFactory(c.Client(), 0)
	core := factory.Core().V1()
	volumes, err := persistentvolume.NewController(c, persistentvolume.ControllerParameters{
		KubeClient: c.Client(),
		// As upstream's tests of volume scheduling: an update that met a
		// conflict is tried again after this time.
		SyncPeriod:                5 * time.Second,
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             factory.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	c.ExpectNoError(err, "create the PV controller")
	ephemerals, err := ephemeral.NewController(c, c.Client(), core.Pods(), core.PersistentVolumeClaims())
	c.ExpectNoError(err, "create the ephemeral volume controller")
	factory.StartWithContext(c)
	factory.WaitForCacheSyncWithContext(c)
	running.Go(func() { volumes.Run(c) })
	running.Go(func() { ephemerals.Run(c, 1) })
	running.Go(func() {
		<-c.Done()
		factory.Shutdown()
	})
}

// StartDriver starts a driver. It ends with the test.
func (c *Cluster) StartDriver(config modeldriver.Config) *modeldriver.Driver {
	c.Helper()
	driver, err := modeldriver.Start(c, c.Client(), config)
	c.ExpectNoError(err, "start the model driver")
	return driver
}
