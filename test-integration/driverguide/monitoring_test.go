package driverguide

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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

// TestMonitoring asks the queries of the rules and the dashboard of metrics of the scheduler and the
// provisioner, after what those count has happened once.
func TestMonitoring(t *testing.T) {
	c := clustertest.StartWith(ktesting.Init(t), clustertest.Options{
		ServerFlags:        serverFlags,
		ReservationTimeout: 5,
	})
	g := apply(c)
	socket, _ := g.startDriver()
	s := &scrapes{guide: g, dir: c.TempDir(), provisioner: g.freeAddress()}
	g.startProvisioner(socket, "--capacity-confirmation", "--http-endpoint="+s.provisioner)
	g.expectPools("100Gi", "60Gi")
	s.waitFor("csistoragecapacities_desired_goal 1")
	s.scrape()

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
	s.scrape()

	c.DeletePod(pod)
	g.requestTooMuch()
	s.waitFor(`reason="expired",storage_class="stuck"`, `grpc_status_code="ResourceExhausted"`)
	c.CreatePod(clustertest.Pod{Name: "stuck-again", Class: stuck, Sizes: []string{"10Gi"}})
	s.waitFor(`in_flight_bytes{storage_class="stuck"}`)
	s.scrape()
	s.scrape() // a rate is between two

	if err := s.check(monitoring); err != nil {
		t.Error(err)
	}
	s.expectPicture()
	for _, mistake := range []struct{ file, right, wrong, want string }{
		{"rules.yaml", "scheduler_volume_released_volumes", "scheduler_volume_released_volume", "rule VolumesReleased: no component has scheduler_volume_released_volume"},
		{"rules.yaml", `reason="expired"`, `reason="late"`, "no component has"},
		{"rules.yaml", "max by (driver)", "max (driver)", "parse"},
		{"dashboard.json", "sum by (reason) (rate(scheduler_volume_binding_capacity_confirmations", "sum by (cause) (rate(scheduler_volume_binding_capacity_confirmations", "has no label cause"},
		{"dashboard.json", "{{driver}} released", "{{name}} released", "has no label name, which the legend names"},
	} {
		if err := s.check(g.withMistake(mistake.file, mistake.right, mistake.wrong)); err == nil || !strings.Contains(err.Error(), mistake.want) {
			t.Errorf("%s with %s instead of %s: %v, want %s", mistake.file, mistake.wrong, mistake.right, err, mistake.want)
		}
	}
}

// scrapes are the metrics of all components at some moments.
type scrapes struct {
	guide
	dir         string
	seconds     int
	provisioner string // where it listens
}

// scrape adds a moment.
func (s *scrapes) scrape() {
	s.Helper()
	s.seconds += 30
	for job, read := range map[string]func() (string, error){"kube-scheduler": schedulerMetrics, "csi-provisioner": s.provisionerMetrics} {
		text, err := read()
		s.ExpectNoError(err, "metrics of "+job)
		s.ExpectNoError(os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("%d-%s.txt", s.seconds, job)), []byte(text), 0o600))
	}
}

// waitFor waits until the metrics of the scheduler and the provisioner contain texts.
func (s *scrapes) waitFor(texts ...string) {
	s.Helper()
	s.Eventually(func(context.Context) error {
		scheduler, err1 := schedulerMetrics()
		provisioner, err2 := s.provisionerMetrics()
		err := errors.Join(err1, err2)
		for _, text := range texts {
			if !strings.Contains(scheduler+provisioner, text) {
				err = errors.Join(err, fmt.Errorf("no metric has %s", text))
			}
		}
		return err
	})
}

// schedulerMetrics asks the handler that kube-scheduler serves as /metrics.
func schedulerMetrics() (string, error) {
	response := httptest.NewRecorder()
	legacyregistry.Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		return "", errors.New(response.Body.String())
	}
	return response.Body.String(), nil
}

func (s *scrapes) provisionerMetrics() (string, error) {
	response, err := http.Get("http://" + s.provisioner + "/metrics")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// expectPicture draws the dashboard, and expects that the picture of docs/how-to/monitor.md shows the same panels.
func (s *scrapes) expectPicture() {
	s.Helper()
	picture := filepath.Join(s.TempDir(), "dashboard.svg")
	s.ExpectNoError(s.check(monitoring, "-draw", picture))
	for _, file := range []string{picture, "../../docs/images/dashboard.svg"} {
		svg, err := os.ReadFile(file)
		s.ExpectNoError(err)
		for _, title := range s.panels() {
			if !bytes.Contains(svg, []byte(">"+title+"<")) {
				s.Errorf("%s has no panel %q; make e2e LONG=1 draws it anew, in _work/logs/dashboard.svg", file, title)
			}
		}
	}
}

// panels are the titles of the dashboard's.
func (s *scrapes) panels() []string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	s.ExpectNoError(err)
	var dashboard struct{ Panels []struct{ Title string } }
	s.ExpectNoError(json.Unmarshal(text, &dashboard))
	var titles []string
	for _, p := range dashboard.Panels {
		titles = append(titles, p.Title)
	}
	return titles
}

// check runs promcheck, which is a module of its own.
func (s *scrapes) check(folder string, flags ...string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(s, "go", append(append([]string{"run", "."}, flags...), folder, s.dir)...)
	cmd.Dir = "../promcheck"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("promcheck: %w\n%s", err, out)
	}
	return nil
}

// withMistake returns a copy of the folder with the rules and the dashboard, with another text in a
// file.
func (g *guide) withMistake(name, right, wrong string) string {
	g.Helper()
	dir := g.TempDir()
	g.ExpectNoError(os.CopyFS(dir, os.DirFS(monitoring)))
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	g.ExpectNoError(err)
	if !bytes.Contains(text, []byte(right)) {
		g.Fatalf("%s does not contain %s", name, right)
	}
	g.ExpectNoError(os.WriteFile(path, bytes.Replace(text, []byte(right), []byte(wrong), 1), 0o600))
	return dir
}

// freeAddress returns one on which nobody listens.
func (g *guide) freeAddress() string {
	g.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.ExpectNoError(err, "listen")
	defer listener.Close()
	return listener.Addr().String()
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
