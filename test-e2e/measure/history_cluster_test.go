package measure

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestHistory reads the logs of a driver that was started again, beside a provisioner.
func TestHistory(t *testing.T) {
	spec := corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "driver", Image: driverImage}, {Name: "provisioner", Image: provisionerImage + ":dev"}}}
	labels := map[string]string{"app": "driver"}
	answers := map[string]any{
		"/apis/apps/v1/daemonsets": appsv1.DaemonSetList{Items: []appsv1.DaemonSet{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "csi"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{Spec: spec}},
		}}},
		"/api/v1/namespaces/csi/pods?labelSelector=app%3Ddriver": corev1.PodList{Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: "driver-n"}, Spec: spec,
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "driver", RestartCount: 3}, {Name: "provisioner", RestartCount: 3}}},
		}}},
		"/api/v1/namespaces/csi/pods/driver-n/log?container=driver&previous=true": `I1124 12:00:00.000000       1 record.go:20] "Room" event="started" node="n" volume="" pool="" bytes=0 pools="" at="2026-11-24T12:00:00Z"
I1124 12:00:01.000000       1 record.go:20] "Room" event="takes" node="n" volume="v" pool="a" bytes=6 pools="" at="2026-11-24T12:00:01Z"
`,
		"/api/v1/namespaces/csi/pods/driver-n/log?container=driver": `I1124 12:00:02.000000       1 record.go:20] "Room" event="pool" node="n" volume="" pool="a" bytes=10 pools="" at="2026-11-24T12:00:02Z"
I1124 12:00:02.000000       1 record.go:20] "Room" event="has" node="n" volume="v" pool="a" bytes=6 pools="" at="2026-11-24T12:00:02Z"
I1124 12:00:02.000000       1 record.go:20] "Room" event="started" node="n" volume="" pool="" bytes=0 pools="" at="2026-11-24T12:00:02Z"
`,
	}
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
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	operations, err := (&Cluster{Interface: client}).History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range operations {
		got = append(got, o.String())
	}
	want := []string{"start with 0 pools and 0 volumes", "create v of 6 bytes: unknown", "start with 1 pools and 1 volumes"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
}
