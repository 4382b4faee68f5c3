package clustertest

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	clientktesting "k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/ktesting"

	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/modeldriver"
)

// serverFlags turn off what needs controllers that do not run: taints of new
// nodes, and finalizers of claims.
var serverFlags = []string{"--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection"}

// podNamespace is where pods and claims are.
const podNamespace = "pods"

// Cluster is a control plane that runs until the end of its test.
type Cluster struct {
	clientktesting.TContext
	// Namespace is where its pods and claims are.
	Namespace string

	options Options
	server  *apiservertest.Server
	running *sync.WaitGroup
	// components is the way of drivers and controllers to the server, over which
	// clients connects them.
	components *link
	clients    clientktesting.TContext
	// scheduler is the one that runs, and standby waits for its lease. leases is
	// how many have asked for it.
	scheduler, standby *process
	leases             int
	// unseen is set when the scheduler may not know yet what was created.
	unseen bool
}

// Options are what differs from the defaults of a control plane.
type Options struct {
	// GateOff turns the feature gate off.
	GateOff bool
	// Policy is capacityReservation.policy of the scheduler, if not empty.
	Policy config.CapacityReservationPolicy
	// ReservationTimeout is capacityReservation.timeoutSeconds of the scheduler,
	// if not zero.
	ReservationTimeout int64
	// ServerFlags are flags of the API server. Feature gates are for the scheduler,
	// too.
	ServerFlags []string
	// NoScheduler leaves schedulers to the test.
	NoScheduler bool
	// Lease has the scheduler run only while it has a lease.
	Lease bool
	// Plugins are those of the scheduler that are not in its tree.
	Plugins frameworkruntime.Registry
	// Configure changes the configuration of the scheduler, if not nil.
	Configure func(*config.KubeSchedulerConfiguration)
}

// Start starts a control plane with the feature gate on.
func Start(tCtx ktesting.TContext) *Cluster {
	tCtx.Helper()
	return StartWith(tCtx, Options{})
}

// StartWith starts a control plane.
func StartWith(tCtx ktesting.TContext, options Options) *Cluster {
	tCtx.Helper()
	start := apiservertest.StartGateOn
	if options.GateOff {
		// Once in a process, with the gate that the other tests of the package have.
		metrics.Register()
		start = apiservertest.StartGateOff
	}
	server := start(tCtx, apiservertest.NewStorage(), slices.Concat(serverFlags, options.ServerFlags)...)

	// The server ends after everything that uses it.
	tCtx = tCtx.WithCancel()
	var running sync.WaitGroup
	tCtx.Cleanup(func() {
		tCtx.Cancel("test is done")
		running.Wait()
	})
	server.Config.QPS, server.Config.Burst = 1000, 10000
	// As kube-scheduler and kube-controller-manager do.
	server.Config.ContentType, server.Config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c := &Cluster{
		TContext:  clientktesting.WithRESTConfig(tCtx, server.Config),
		Namespace: podNamespace,
		options:   options,
		server:    server,
		running:   &running,
	}
	var restConfig *rest.Config
	c.components, restConfig = newLink(server.Config)
	c.clients = clientktesting.WithRESTConfig(tCtx, restConfig)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	_, err := c.Client().CoreV1().Namespaces().Create(c, namespace, metav1.CreateOptions{})
	c.ExpectNoError(err, "create namespace")

	c.startControllers()
	if !options.NoScheduler {
		c.StartScheduler()
	}
	return c
}

// Connect is for a control plane whose scheduler and controllers are started elsewhere.
func Connect(tCtx ktesting.TContext, server *apiservertest.Server) *Cluster {
	tCtx.Helper()
	c := &Cluster{TContext: clientktesting.WithRESTConfig(tCtx, server.Config), Namespace: podNamespace, server: server}
	_, err := c.Client().CoreV1().Namespaces().Create(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		c.ExpectNoError(err, "create namespace")
	}
	return c
}

// schedulerConfig returns the default configuration, with the options as far as
// the feature gate is on.
func (c *Cluster) schedulerConfig() *config.KubeSchedulerConfiguration {
	c.Helper()
	schedulerConfig, err := latest.Default()
	c.ExpectNoError(err, "default configuration of the scheduler")
	for _, plugin := range schedulerConfig.Profiles[0].PluginConfig {
		args, ok := plugin.Args.(*config.VolumeBindingArgs)
		if !ok || args.CapacityReservation == nil {
			continue
		}
		if c.options.Policy != "" {
			args.CapacityReservation.Policy = c.options.Policy
		}
		if c.options.ReservationTimeout != 0 {
			args.CapacityReservation.TimeoutSeconds = c.options.ReservationTimeout
		}
	}
	if c.options.Configure != nil {
		c.options.Configure(schedulerConfig)
	}
	return schedulerConfig
}

// startControllers starts what binds claims to volumes, and what creates the
// claims of generic ephemeral volumes.
func (c *Cluster) startControllers() {
	c.Helper()
	factory := informers.NewSharedInformerFactory(c.clients.Client(), 0)
	core := factory.Core().V1()
	volumes, err := persistentvolume.NewController(c, persistentvolume.ControllerParameters{
		KubeClient: c.clients.Client(),
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
	ephemerals, err := ephemeral.NewController(c, c.clients.Client(), core.Pods(), core.PersistentVolumeClaims())
	c.ExpectNoError(err, "create the ephemeral volume controller")
	factory.StartWithContext(c)
	factory.WaitForCacheSyncWithContext(c)
	c.running.Go(func() { volumes.Run(c) })
	c.running.Go(func() { ephemerals.Run(c, 1) })
	c.running.Go(func() {
		<-c.Done()
		factory.Shutdown()
	})
}

// StartDriver starts a driver. It ends with the test.
func (c *Cluster) StartDriver(config modeldriver.Config) *modeldriver.Driver {
	c.Helper()
	driver, err := modeldriver.Start(c, c.clients.Client(), config)
	c.ExpectNoError(err, "start the model driver")
	c.unseen = true
	return driver
}
