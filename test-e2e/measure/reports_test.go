package measure

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/capacity"
)

const nodeLabel = "topology.example.com/node"

// TestReports: a volume is confirmed by the object of its class and node, up to the version in
// which it was seen first, and by no other.
func TestReports(t *testing.T) {
	tl := &Timeline{old: sets.New[types.UID](), refused: sets.New[types.UID]()}
	tl.reports.restart()
	volume := func(uid types.UID, version, namespace string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}, Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "class", ClaimRef: &corev1.ObjectReference{Namespace: namespace},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: nodeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}}},
		}}
	}
	report := func(class, node, version, reflected string) {
		object := &storagev1.CSIStorageCapacity{
			ObjectMeta:       metav1.ObjectMeta{UID: types.UID(class + "/" + node), ResourceVersion: version},
			StorageClassName: class, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{nodeLabel: node}}, Capacity: new(resource.MustParse("1Gi")),
		}
		if reflected != "" {
			capacity.SetReflectedVolumes(object, reflected)
		}
		tl.report(object)
	}
	expect := func(writes float64, volumes int, confirmed bool) {
		t.Helper()
		got, seconds := tl.reports.evaluate()
		if got != writes || tl.Volumes() != volumes || (seconds >= 0) != confirmed || seconds > 60 {
			t.Errorf("%v writes for each of %d volumes, confirmed after %v s, want %v for %d, confirmed: %t", got, tl.Volumes(), seconds, writes, volumes, confirmed)
		}
	}
	tl.volume(volume("1", "10", "ns"), "ns")
	tl.volume(volume("2", "12", "ns"), "ns")
	tl.volume(volume("3", "9", "other"), "ns")
	tl.volume(volume("1", "99", "ns"), "ns") // not new
	report("class", "a", "100", "")
	report("class", "a", "100", "99") // not a write
	report("class", "a", "101", "9")
	report("class", "b", "102", "99")
	report("other", "a", "103", "99")
	expect(2, 2, false)
	report("class", "a", "104", "10")
	expect(2.5, 2, true)
	tl.reports.restart()
	tl.volume(volume("2", "12", "ns"), "ns") // not new
	expect(0, 0, false)
	tl.volume(volume("4", "10", "ns"), "ns") // seen after its report
	expect(0, 1, true)
}

func TestRefused(t *testing.T) {
	tl := &Timeline{old: sets.New[types.UID]("old"), refused: sets.New[types.UID]()}
	event := func(uid, reason, message string) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Reason: reason, Message: message}
	}
	const full = "rpc error: code = ResourceExhausted desc = no room"
	for _, e := range []*corev1.Event{
		event("a", "FailedMount", full), event("a", "FailedMount", full), event("b", "FailedMount", "rpc error: code = Aborted desc = copying"),
		event("old", "FailedMount", full), event("c", "FailedScheduling", full),
	} {
		tl.event(e)
	}
	if !tl.refused.Equal(sets.New[types.UID]("a")) {
		t.Errorf("refused are %v, want a", tl.refused)
	}
}

func TestCapacityCalls(t *testing.T) {
	got, err := capacityCalls([]byte(`# TYPE csi_sidecar_operations_seconds histogram
csi_sidecar_operations_seconds_bucket{driver_name="d",method_name="/csi.v1.Controller/GetCapacity",grpc_status_code="OK",le="+Inf"} 7
csi_sidecar_operations_seconds_sum{driver_name="d",method_name="/csi.v1.Controller/GetCapacity",grpc_status_code="OK"} 1.5
csi_sidecar_operations_seconds_count{driver_name="d",method_name="/csi.v1.Controller/GetCapacity",grpc_status_code="OK"} 7
csi_sidecar_operations_seconds_bucket{driver_name="d",method_name="/csi.v1.Controller/GetCapacity",grpc_status_code="Internal",le="+Inf"} 2
csi_sidecar_operations_seconds_sum{driver_name="d",method_name="/csi.v1.Controller/GetCapacity",grpc_status_code="Internal"} 1
csi_sidecar_operations_seconds_count{driver_name="d",method_name="/csi.v1.Controller/GetCapacity",grpc_status_code="Internal"} 2
csi_sidecar_operations_seconds_bucket{driver_name="d",method_name="/csi.v1.Controller/CreateVolume",grpc_status_code="OK",le="+Inf"} 60
csi_sidecar_operations_seconds_sum{driver_name="d",method_name="/csi.v1.Controller/CreateVolume",grpc_status_code="OK"} 1
csi_sidecar_operations_seconds_count{driver_name="d",method_name="/csi.v1.Controller/CreateVolume",grpc_status_code="OK"} 60
`))
	if err != nil || got != 9 {
		t.Errorf("%d calls, %v, want 9", got, err)
	}
}
