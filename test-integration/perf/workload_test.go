// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	schedulerperf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"capacityv2.internal/test-integration/modeldriver"
)

const (
	// configFile has the workloads. Pods and claims are in the namespace that it
	// names.
	configFile = "performance-config.yaml"
	namespace  = "volumes-0"

	// tenantNamespace and tenantClass are those of pods that wait.
	tenantNamespace = "volumes-1"
	tenantClass     = "tenant"

	// parallelCreates is the number of requests that set up a workload at once.
	parallelCreates = 30
)

func TestMain(m *testing.M) {
	if err := schedulerperf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// Files for upstream's dashboard, which otherwise would be left here.
	dir, err := os.MkdirTemp("", "perf")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := flag.Set("data-items-dir", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cleanup, err := useFixtureFolder()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cleanup()
	return m.Run()
}

// podsTimeout is for all pods of a workload. Ten thousand of them may take longer than the
// ten minutes of scheduler_perf.
const podsTimeout = 20 * time.Minute

func TestSchedulerPerf(t *testing.T) {
	schedulerperf.RunIntegrationPerfScheduling(t, configFile, schedulerperf.WithNodeUpdateFn(startDriver))
}

func BenchmarkPerfScheduling(b *testing.B) {
	schedulerperf.RunBenchmarkPerfScheduling(b, configFile, "capacity", nil,
		schedulerperf.WithNodeUpdateFn(startDriver), schedulerperf.WithPodsSchedulingTimeout(podsTimeout))
}

// startDriver starts a driver that has storage on all nodes, for each class its own, and
// creates the claims of the pods that come next, which take turns with the classes.
func startDriver(tCtx ktesting.TContext, sched *scheduler.Scheduler, w *schedulerperf.Workload, nodes *corev1.NodeList) error {
	params := map[string]int{"measurePods": 0, "published": 0, "checked": 0, "classes": 0}
	for name := range params {
		value, err := w.GetParam(name)
		if err != nil {
			return err
		}
		params[name] = value
	}
	if err := startTenant(tCtx, w, nodes.Items); err != nil {
		return err
	}
	config := modeldriver.Config{Name: "perf.example.com", Untracked: params["published"] == 0, Unchecked: params["checked"] == 0, Bind: true}
	for i := range params["classes"] {
		config.Classes = append(config.Classes, className(i))
	}
	for _, node := range nodes.Items {
		for _, class := range config.Classes {
			config.Segments = append(config.Segments, modeldriver.Segment{
				Labels: map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]},
				Pools:  modeldriver.GiB(400, 300, 200, 100),
				Class:  class,
			})
		}
	}
	if params["classes"] > 1 {
		config.Create = storeObjects
	}
	begin := time.Now()
	stop, err := start(tCtx, config)
	if err != nil {
		return err
	}
	objects := len(config.Segments)
	var took time.Duration
	var inUse float64
	tCtx.Cleanup(func() {
		stop()
		if b, ok := tCtx.TB().(*testing.B); ok && config.Create != nil {
			// How long it took until the scheduler knew all objects, and what was in use then. Not
			// earlier: scheduler_perf drops what was reported before the pods.
			b.ReportMetric(float64(objects), "objects")
			b.ReportMetric(took.Seconds(), "create-s")
			b.ReportMetric(inUse, "heap-B")
		}
	})
	if config.Create != nil {
		if err := waitForObjects(tCtx, sched, objects); err != nil {
			return err
		}
		took, inUse = time.Since(begin), heap()
	}
	return createClaims(tCtx, namespace, params["measurePods"], "1Gi", config.Classes...)
}

// start starts a driver, which has to be stopped when the workload is done.
func start(tCtx ktesting.TContext, config modeldriver.Config) (stop func(), err error) {
	driverCtx := tCtx.WithCancel()
	driver, err := modeldriver.Start(driverCtx, tCtx.Client(), config)
	return func() {
		driverCtx.Cancel("workload is done")
		driver.Wait()
	}, err
}

// startTenant creates the claims of the pods of another tenant, if the workload has any, and one that was sent to a node. The driver
// of that node creates no volume.
func startTenant(tCtx ktesting.TContext, w *schedulerperf.Workload, nodes []corev1.Node) error {
	pods, err := w.GetParam("waitingPods")
	if err != nil {
		return nil // It is a parameter of one workload only.
	}
	room, err := w.GetParam("room")
	if err != nil {
		return err
	}
	node := nodes[0]
	stop, err := start(tCtx, modeldriver.Config{
		Name:    "tenant.example.com",
		Classes: []string{tenantClass},
		Segments: []modeldriver.Segment{{
			Labels: map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]},
			Pools:  modeldriver.GiB(int64(room)),
		}},
		BeforeCreate: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
	if err != nil {
		return err
	}
	tCtx.Cleanup(func() {
		reason := fmt.Sprint(len(nodes), " ", volumebinding.ErrReasonNotEnoughSpace)
		if room > 0 {
			reason = fmt.Sprint(1, " ", volumebinding.ErrReasonCapacityReserved)
		}
		expectWaiting(tCtx, pods, reason)
		stop()
	})
	sent := newClaim(pods, "60Gi", tenantClass)
	sent.Annotations = map[string]string{volume.AnnSelectedNode: node.Name}
	if _, err := tCtx.Client().CoreV1().PersistentVolumeClaims(tenantNamespace).Create(tCtx, sent, metav1.CreateOptions{}); err != nil {
		return err
	}
	return createClaims(tCtx, tenantNamespace, pods, "60Gi", tenantClass)
}

// waitForObjects waits until the scheduler knows so many CSIStorageCapacity objects.
func waitForObjects(ctx context.Context, sched *scheduler.Scheduler, want int) error {
	store := sched.Profiles[corev1.DefaultSchedulerName].SharedInformerFactory().Storage().V1().CSIStorageCapacities().Informer().GetStore()
	got := 0
	err := wait.PollUntilContextTimeout(ctx, time.Second, 10*time.Minute, true, func(context.Context) (bool, error) {
		got = len(store.ListKeys())
		return got == want, nil
	})
	if err != nil {
		return fmt.Errorf("the scheduler knows %d CSIStorageCapacity objects, want %d: %w", got, want, err)
	}
	return nil
}

// expectWaiting checks why the pods of the tenant wait.
func expectWaiting(tCtx ktesting.TContext, want int, reason string) {
	pods, err := tCtx.Client().CoreV1().Pods(tenantNamespace).List(context.WithoutCancel(tCtx), metav1.ListOptions{})
	if err != nil {
		tCtx.Errorf("list the pods that wait: %v", err)
		return
	}
	got := 0
	for _, pod := range pods.Items {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return strings.Contains(c.Message, ": "+reason) }) {
			got++
		}
	}
	if got != want {
		tCtx.Errorf("%d pods wait because %s, want %d of %d", got, reason, want, len(pods.Items))
	}
}

func className(i int) string { return fmt.Sprintf("local-%d", i) }

// createClaims creates those of pods, which take turns with the classes.
func createClaims(tCtx ktesting.TContext, namespace string, n int, size string, classes ...string) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(tCtx, parallelCreates, n, func(i int) {
		_, errs[i] = tCtx.Client().CoreV1().PersistentVolumeClaims(namespace).Create(tCtx, newClaim(i, size, classes[i%len(classes)]), metav1.CreateOptions{})
	})
	return errors.Join(errs...)
}

// newClaim returns the claim of a pod.
func newClaim(i int, size, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// heap returns the bytes that are in use.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
