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

func TestReports(t *testing.T) {
	tl := &Timeline{old: sets.New[types.UID](), refused: sets.New[types.UID]()}
	tl.reports.restart()
	volume := func(uid, namespace string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{UID: types.UID("pv-" + uid)}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: namespace, UID: types.UID(uid)}}}
	}
	report := func(version string, claims ...types.UID) *storagev1.CSIStorageCapacity {
		object := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{UID: "o", ResourceVersion: version}, Capacity: new(resource.MustParse("1Gi"))}
		if err := capacity.Confirm(object, claims); err != nil {
			t.Fatal(err)
		}
		return object
	}
	for _, pv := range []*corev1.PersistentVolume{volume("a", "ns"), volume("b", "ns"), volume("c", "other"), volume("a", "ns")} {
		tl.volume(pv, "ns")
	}
	tl.report(report("1"))
	tl.report(report("1")) // not a write
	tl.report(report("2", "a"))
	tl.report(report("3", "a", "elsewhere"))
	if writes, listed := tl.reports.evaluate(); writes != 1.5 || listed < 0 || listed > 60 {
		t.Errorf("%v writes for each volume, listed after %v s, want 1.5, and a few seconds", writes, listed)
	}
	tl.reports.restart()
	tl.volume(volume("b", "ns"), "ns")
	tl.report(report("3", "b"))
	if writes, listed := tl.reports.evaluate(); writes != 0 || listed != -1 || tl.Volumes() != 0 {
		t.Errorf("after a restart, %v writes, listed after %v s, %d volumes, want 0, -1, 0", writes, listed, tl.Volumes())
	}
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
