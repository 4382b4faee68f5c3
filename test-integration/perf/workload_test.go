package perf

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerperf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
	"capacityv2.internal/test-integration/modeldriver"
)

const (
	// configFile has the workloads. Pods and claims are in the namespace that it
	// names.
	configFile = "performance-config.yaml"
	namespace  = "volumes-0"
	class      = "local"

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
	return apiservertest.WithFixtures(m.Run)
}

func TestSchedulerPerf(t *testing.T) {
	schedulerperf.RunIntegrationPerfScheduling(t, configFile, schedulerperf.WithNodeUpdateFn(startDriver))
}

func BenchmarkPerfScheduling(b *testing.B) {
	schedulerperf.RunBenchmarkPerfScheduling(b, configFile, "capacity", nil, schedulerperf.WithNodeUpdateFn(startDriver))
}

// startDriver starts a driver that has storage on all nodes, and creates the
// claims of the pods that come next.
func startDriver(tCtx ktesting.TContext, _ *scheduler.Scheduler, w *schedulerperf.Workload, nodes *corev1.NodeList) error {
	pods, err := w.GetParam("measurePods")
	if err != nil {
		return err
	}
	published, err := w.GetParam("published")
	if err != nil {
		return err
	}
	checked, err := w.GetParam("checked")
	if err != nil {
		return err
	}
	config := modeldriver.Config{Name: "perf.example.com", Classes: []string{class}, Untracked: published == 0, Unchecked: checked == 0, Bind: true}
	for _, node := range nodes.Items {
		config.Segments = append(config.Segments, modeldriver.Segment{
			Labels: map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]},
			Pools:  modeldriver.GiB(400, 300, 200, 100),
		})
	}
	driverCtx := tCtx.WithCancel()
	driver, err := modeldriver.Start(driverCtx, tCtx.Client(), config)
	if err != nil {
		return err
	}
	tCtx.Cleanup(func() {
		driverCtx.Cancel("workload is done")
		driver.Wait()
	})
	return createClaims(tCtx, pods)
}

func createClaims(tCtx ktesting.TContext, n int) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(tCtx, parallelCreates, n, func(i int) {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i)},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: new(class),
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
		_, errs[i] = tCtx.Client().CoreV1().PersistentVolumeClaims(namespace).Create(tCtx, claim, metav1.CreateOptions{})
	})
	return errors.Join(errs...)
}
