// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	clientktesting "k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/ktesting"

	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

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
	// Patience is how long it waits for something.
	Patience time.Duration

	options Options
	running *sync.WaitGroup
	// components is the way of drivers and controllers to the server, over which
	// clients connects them. links are all ways to it but that of the test.
	components *link
	links      []*link
	clients    clientktesting.TContext
	// scheduler is the one that runs, and standby waits for its lease. leases is
	// how many have asked for it.
	scheduler, standby *runningScheduler
	leases             int
	// unseen is set when the scheduler may not know yet what was created, changed or deleted.
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
	// Gates are more feature gates that are on, of all components.
	Gates []string
	// ServerFlags are flags of the API server.
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

// StartWith starts a control plane, on an API server that the test borrows.
func StartWith(tCtx ktesting.TContext, options Options) *Cluster {
	tCtx.Helper()
	if options.GateOff {
		// Once in a process, with the gate that the other tests of the package have.
		metrics.Register()
	}
	server := BorrowServer(tCtx, options)
	// The server ends after everything that uses it.
	tCtx = tCtx.WithCancel()
	// As kube-scheduler and kube-controller-manager do.
	server.Config.ContentType, server.Config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c := &Cluster{
		TContext:  clientktesting.WithRESTConfig(tCtx, server.Config),
		Namespace: podNamespace,
		Patience:  Patience,
		options:   options,
		running:   &sync.WaitGroup{},
	}
	tCtx.Cleanup(func() {
		for _, l := range c.links {
			l.Finish() // nobody writes to the server when the next test has it
		}
		tCtx.Cancel("test is done")
		c.running.Wait()
	})
	var restConfig *rest.Config
	c.components, restConfig = c.newLink(server.Config)
	c.clients = clientktesting.WithRESTConfig(tCtx, restConfig)

	c.startControllers()
	if !options.NoScheduler {
		c.StartScheduler()
	}
	return c
}

// BorrowServer returns an API server with the feature gates of the options, which the components in the test binary have, too.
// It is wiped when the test ends.
func BorrowServer(tCtx ktesting.TContext, options Options) *Server {
	tCtx.Helper()
	t := target(tCtx)
	if options.GateOff && t == targetPatched {
		t = targetGateOff
	}
	flags := slices.Concat(targetFlags(t), serverFlags, options.ServerFlags)
	gates := featuregatetesting.FeatureOverrides{}
	for _, name := range slices.Concat(defaultGates, options.Gates) {
		flags = append(flags, "--feature-gates="+name+"=true")
		gates[featuregate.Feature(name)] = true
	}
	gates[gate] = t == targetPatched
	maps.DeleteFunc(gates, func(name featuregate.Feature, enabled bool) bool {
		return utilfeature.DefaultFeatureGate.Enabled(name) == enabled
	})
	if len(gates) > 0 { // they are global in a process
		featuregatetesting.SetFeatureGatesDuringTest(tCtx, utilfeature.DefaultFeatureGate, gates)
	}
	return servers.borrow(tCtx, t, flags)
}

// Connect is for a control plane whose scheduler and controllers are started elsewhere.
func Connect(tCtx ktesting.TContext, server *Server) *Cluster {
	tCtx.Helper()
	c := &Cluster{TContext: clientktesting.WithRESTConfig(tCtx, server.Config), Namespace: podNamespace, Patience: Patience, running: &sync.WaitGroup{}}
	c.clients = c.TContext
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
	c.running.Go(driver.Wait)
	c.unseen = true
	return driver
}
