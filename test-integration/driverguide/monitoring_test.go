// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-helpers/storage/capacity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const (
	monitoring = "../../docs/monitoring"
	// stuck is a class whose driver does not create volumes.
	stuck = "stuck"
)

// TestMonitoring looks for what the rules and the dashboard ask for in the metrics of the scheduler and the
// provisioner, after what those count has happened once. promtool checks the queries themselves.
func TestMonitoring(t *testing.T) {
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{
		ServerFlags:        serverFlags,
		ReservationTimeout: 5,
	})
	g := apply(c)
	socket, _ := g.startDriver()
	port, err := clustertest.FreePort()
	c.ExpectNoError(err, "port of the provisioner")
	s := &metrics{guide: g, provisioner: "http://127.0.0.1:" + port + "/metrics"}
	g.startProvisioner(socket, "--capacity-confirmation", "--http-endpoint=127.0.0.1:"+port)
	g.expectPools("100Gi", "60Gi")
	s.waitFor("csistoragecapacities_desired_goal 1")

	// A volume that is shown, and a pod without room.
	c.CreatePod(clustertest.Pod{Name: "one", Class: class, Sizes: []string{"50Gi"}})
	c.ExpectNode("one", node)
	c.CreatePod(clustertest.Pod{Name: "large", Class: class, Sizes: []string{"500Gi"}})
	c.ExpectNoRoom("large", 1)
	s.waitFor(`reservation_resets_total{reason="refresh"}`)

	g.createStuckClass()
	pod := clustertest.Pod{Name: "stuck", Class: stuck, Sizes: []string{"10Gi"}}
	c.CreatePod(pod)
	s.waitFor(`in_flight_bytes{storage_class="stuck"}`, `confirmations_ignored_total{reason="malformed"}`)

	// Its claim stays. One that is deleted, too, would count as such.
	c.ExpectNoError(c.Client().CoreV1().Pods(c.Namespace).Delete(c, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "delete pod")
	g.requestTooMuch()
	s.waitFor(`reason="expired",storage_class="stuck"`, `grpc_status_code="ResourceExhausted"`)
	c.CreatePod(clustertest.Pod{Name: "stuck-again", Class: stuck, Sizes: []string{"10Gi"}})
	s.waitFor(`in_flight_bytes{storage_class="stuck"}`)

	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(monitoring, file))
		c.ExpectNoError(err)
		if missing := s.missing(string(text)); len(missing) > 0 {
			t.Errorf("%s: no component has %s", file, strings.Join(missing, ", "))
		}
	}
	const query = `sum(rate(scheduler_volume_released_volume[1m])) + scheduler_volume_released_volumes + csi_sidecar_operations_seconds_count{grpc_status_code="Late",driver_name="x"}`
	if got, want := s.missing(query), []string{"scheduler_volume_released_volume", `csi_sidecar_operations_seconds_count with grpc_status_code="Late"`}; !slices.Equal(got, want) {
		t.Errorf("missing of a query with mistakes: %q, want %q", got, want)
	}
}

// metrics are those of the scheduler and the provisioner.
type metrics struct {
	guide
	provisioner string // URL of those of the provisioner
}

// asked is a metric of a component in a query, with what is asked of its labels. Those of recording rules have a colon.
var asked = regexp.MustCompile(`(?:^|[^\w:])((?:scheduler|csistoragecapacities|csi_sidecar)_[a-z_]+)(?:\{([^}]*)\})?`)

// label is one of which a query names the value; in JSON, quotes have backslashes.
var label = regexp.MustCompile(`(reason|result|grpc_status_code|method_name)=\\?"([^"\\]*)\\?"`)

// missing names what queries ask for and no component has.
func (s *metrics) missing(queries string) (missing []string) {
	s.Helper()
	text, err := s.text()
	s.ExpectNoError(err, "metrics")
	for _, m := range asked.FindAllStringSubmatch(queries, -1) {
		var series []string
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, m[1]); ok && strings.ContainsAny(rest[:1], "{ ") {
				series = append(series, line)
			}
		}
		if len(series) == 0 {
			missing = append(missing, m[1])
			continue
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			pair := l[1] + `="` + l[2] + `"`
			if !slices.ContainsFunc(series, func(line string) bool { return strings.Contains(line, pair) }) {
				missing = append(missing, m[1]+" with "+pair)
			}
		}
	}
	return missing
}

// waitFor waits until the metrics of the scheduler and the provisioner contain texts.
func (s *metrics) waitFor(texts ...string) {
	s.Helper()
	s.Eventually(func(context.Context) error {
		metrics, err := s.text()
		for _, text := range texts {
			if !strings.Contains(metrics, text) {
				err = errors.Join(err, fmt.Errorf("no metric has %s", text))
			}
		}
		return err
	})
}

// text asks the provisioner, and the handler that kube-scheduler serves as /metrics.
func (s *metrics) text() (string, error) {
	scheduler := httptest.NewRecorder()
	legacyregistry.Handler().ServeHTTP(scheduler, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if scheduler.Code != http.StatusOK {
		return "", errors.New(scheduler.Body.String())
	}
	provisioner, err := clustertest.Get(s, s.provisioner)
	return scheduler.Body.String() + string(provisioner), err
}

// createStuckClass creates a class with room on the node, as an object says whose confirmation
// cannot be read.
func (g *guide) createStuckClass() {
	g.Helper()
	const driver = "stuck.example.com"
	_, err := g.Client().StorageV1().CSIDrivers().Create(g, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true), VolumeRebuilding: new(true)},
	}, metav1.CreateOptions{})
	g.ExpectNoError(err, "create CSIDriver")
	g.CreateClass(stuck, driver)
	_, err = g.Client().StorageV1().CSIStorageCapacities(g.Namespace).Create(g, &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Name: stuck, Annotations: map[string]string{capacity.AnnReflectsVolumes: "{"}},
		StorageClassName: stuck, NodeTopology: &metav1.LabelSelector{}, Capacity: resource.NewQuantity(1<<40, resource.BinarySI),
	}, metav1.CreateOptions{})
	g.ExpectNoError(err, "create the object")
	g.WaitForScheduler()
}

// requestTooMuch has the driver refuse a volume, for a claim that somebody has sent to the node.
func (g *guide) requestTooMuch() {
	g.Helper()
	_, err := g.Client().CoreV1().PersistentVolumeClaims(g.Namespace).Create(g, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "too-much", Annotations: map[string]string{volume.AnnSelectedNode: node}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("500Gi")}},
		},
	}, metav1.CreateOptions{})
	g.ExpectNoError(err, "create claim")
}
