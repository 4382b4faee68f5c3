package measure

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// startLines is what a driver says when it begins.
	startLines = `{"event":"pool","at":"2026-11-24T12:00:02Z","node":"n","pool":"a","bytes":10}
{"event":"has","at":"2026-11-24T12:00:02Z","node":"n","volume":"v","pool":"a","bytes":6}
{"event":"started","at":"2026-11-24T12:00:02Z","node":"n"}
`
	// lastLines is the end of a log that ends with its driver.
	lastLines = `{"event":"takes","at":"2026-11-24T12:00:01Z","node":"n","volume":"v","pool":"a","bytes":6}
`
	// emptyLines is startLines without a volume, before that.
	emptyLines = `{"event":"pool","at":"2026-11-24T12:00:00Z","node":"n","pool":"a","bytes":10}
{"event":"started","at":"2026-11-24T12:00:00Z","node":"n"}
`
)

// TestHistory reads the logs of a driver that was started again, beside a provisioner. Those that are not whole are an error.
func TestHistory(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(noon)}}
	whole := []string{"start with 1 pools and 0 volumes", "create v of 6 bytes: unknown", "start with 1 pools and 1 volumes"}
	for name, tc := range map[string]struct {
		restarts      int32
		last          corev1.ContainerState
		since         time.Time
		previous, log string
		want          []string
		wrong         string
	}{
		"once":              {log: startLines, want: whole[2:]},
		"started again":     {restarts: 1, last: ended, previous: emptyLines + lastLines, log: startLines, want: whole},
		"ended at once":     {restarts: 1, last: ended, log: startLines, want: whole[2:]},
		"more often before": {restarts: 3, last: ended, since: noon.Add(time.Second), previous: emptyLines + lastLines, log: startLines, want: whole},
		"more often": {
			restarts: 3, last: ended, previous: emptyLines + lastLines, log: startLines,
			wrong: "pod driver-n on node n: 3 restarts of the driver, the one before the last at 2026-11-24T12:00:00Z; expected: 1 at most, as earlier logs are gone",
		},
		"more often after": {
			restarts: 2, last: ended, since: noon, previous: emptyLines + lastLines, log: startLines,
			wrong: "2 restarts of the driver, the one before the last at 2026-11-24T12:00:00Z; expected: 1 at most since 2026-11-24T12:00:00Z, as",
		},
		"more often, nobody knows when": {restarts: 2, since: noon, wrong: "the one before the last at an unknown moment"},
		"rotated":                       {log: lastLines, wrong: `log of pod driver-n on node n: it begins with {"event":"takes","at":"2026-11-24T12:00:01Z","node":"n"`},
		"rotated before":                {restarts: 1, last: ended, previous: lastLines, log: startLines, wrong: "expected: the driver's pools, its volumes and its start before any call"},
		"rotated, nothing since":        {wrong: "log of pod driver-n on node n: it does not say that the driver has started; expected"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "driver", Image: driverImage}, {Name: "provisioner", Image: provisionerImage + ":dev"}}}
			labels := map[string]string{"app": "driver"}
			answers := map[string]any{
				"/apis/apps/v1/daemonsets": appsv1.DaemonSetList{Items: []appsv1.DaemonSet{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "csi"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{Spec: spec}},
				}}},
				"/api/v1/namespaces/csi/pods?labelSelector=app%3Ddriver": corev1.PodList{Items: []corev1.Pod{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: "driver-n"}, Spec: spec,
					Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
						{Name: "driver", RestartCount: tc.restarts, LastTerminationState: tc.last}, {Name: "provisioner", RestartCount: 3},
					}},
				}}},
				"/api/v1/namespaces/csi/pods/driver-n/log?container=driver&previous=true": tc.previous,
				"/api/v1/namespaces/csi/pods/driver-n/log?container=driver":               tc.log,
			}
			operations, err := (&Cluster{Interface: serve(t, answers)}).History(t.Context(), tc.since)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("got error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			var got []string
			for _, o := range operations {
				got = append(got, o.String())
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q with error %v, want %q", got, err, tc.want)
			}
		})
	}
}

// serve returns a client for an API server with these answers, by path and query: texts, or objects.
func serve(t *testing.T, answers map[string]any) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.RequestURI()]
		if !ok {
			t.Errorf("somebody asks for %s", r.URL.RequestURI())
		}
		if text, ok := answer.(string); ok {
			_, _ = w.Write([]byte(text))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
