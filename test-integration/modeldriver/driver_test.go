package modeldriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/storage/capacity"
)

const node = "node-1"

// fixture is a driver with one node and a client that keeps objects in memory.
type fixture struct {
	*testing.T
	client *fake.Clientset
	driver *Driver
}

func start(t *testing.T, config Config, pools ...int64) *fixture {
	t.Helper()
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	config.Classes, config.Segments = []string{"class"}, []Segment{{Pools: GiB(pools...)}}
	return startWith(t, client, config)
}

func startWith(t *testing.T, client *fake.Clientset, config Config) *fixture {
	t.Helper()
	config.Name = "driver"
	version := 1
	client.PrependReactor("create", "persistentvolumes", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		// As an API server does. The list of the client has the same versions, and begins with 1.
		version++
		action.(clientgotesting.CreateAction).GetObject().(*corev1.PersistentVolume).ResourceVersion = fmt.Sprint(version)
		return false, nil, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	driver, err := Start(ctx, client, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		driver.Wait()
	})
	return &fixture{T: t, client: client, driver: driver}
}

// claim creates a claim for which the node is selected.
func (f *fixture) claim(name, size string) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Annotations: map[string]string{selectedNode: node}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("class"),
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	if _, err := f.client.CoreV1().PersistentVolumeClaims("default").Create(f.Context(), claim, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) eventually(check func() error) {
	f.Helper()
	var last error
	err := wait.PollUntilContextTimeout(f.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		f.Fatal(last)
	}
}

func (f *fixture) object() *storagev1.CSIStorageCapacity {
	f.Helper()
	object, err := f.client.StorageV1().CSIStorageCapacities(Namespace).Get(f.Context(), "class-0", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return object
}

// expectReport waits for these pools, in GiB, in the object.
func (f *fixture) expectReport(pools ...int64) {
	f.Helper()
	f.eventually(func() error { return f.reports("", pools...) })
}

// expectConfirmed waits for these pools in the object, with a valid confirmation of all
// volumes up to that of a claim, or of none so far.
func (f *fixture) expectConfirmed(claim string, pools ...int64) {
	f.Helper()
	f.eventually(func() error {
		version := "1"
		if claim != "" {
			volume, err := f.client.CoreV1().PersistentVolumes().Get(f.Context(), volumeName(types.UID(claim)), metav1.GetOptions{})
			if err != nil {
				return err
			}
			version = volume.ResourceVersion
		}
		return f.reports(version, pools...)
	})
}

// reports returns an error if the object has other pools, or confirms volumes up to another
// version. An empty one is for an object that must not confirm any.
func (f *fixture) reports(version string, pools ...int64) error {
	f.Helper()
	object := f.object()
	var got []int64
	for _, pool := range object.AvailableCapacities {
		got = append(got, pool.Value()>>30)
	}
	reflected, err := capacity.ReflectedVolumes(object)
	if err == nil && (!slices.Equal(got, pools) || reflected != version) {
		err = fmt.Errorf("published are %v with volumes up to %q, want %v up to %q", got, reflected, pools, version)
	}
	return err
}

func (f *fixture) provisioned(want int) error {
	if n := f.driver.Provisioned(); n != want {
		return fmt.Errorf("%d volumes, want %d", n, want)
	}
	return nil
}

// writes returns how often the object was updated.
func (f *fixture) writes() int {
	n := 0
	for _, action := range f.client.Actions() {
		if action.Matches("update", "csistoragecapacities") {
			n++
		}
	}
	return n
}

func TestPools(t *testing.T) {
	for name, tc := range map[string]struct {
		config Config
		want   []int64
	}{
		"best fit":  {want: []int64{100, 40}},
		"worst fit": {config: Config{WorstFit: true}, want: []int64{80, 60}},
		"rounded":   {config: Config{RoundUp: 16 << 30}, want: []int64{100, 28}},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, tc.config, 100, 60)
			f.claim("a", "10Gi")
			f.claim("b", "10Gi")
			f.eventually(func() error { return f.provisioned(2) })
			f.expectReport(tc.want...)
			volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), volumeName("a"), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := volume.Spec.Capacity.Storage().Value(), max(10<<30, tc.config.RoundUp); got != want {
				t.Errorf("the volume has %d bytes, want %d", got, want)
			}
		})
	}
}

// TestWritesPerSecond: five writes go through at once. The next one has the number
// from before it waited, and the last one is for several volumes.
func TestWritesPerSecond(t *testing.T) {
	f := start(t, Config{WritesPerSecond: 1}, 100)
	for i := range writeBurst {
		f.claim(fmt.Sprintf("claim-%d", i), "1Gi")
		f.expectReport(int64(99 - i))
	}
	begin := time.Now()
	f.claim("sixth", "1Gi")
	f.eventually(func() error { return f.provisioned(6) })
	time.Sleep(100 * time.Millisecond) // the write waits
	f.claim("seventh", "1Gi")
	f.claim("eighth", "1Gi")
	f.expectReport(94)
	f.expectReport(92)
	if took := time.Since(begin); took < time.Second {
		t.Errorf("two more writes took %v, want more than a second", took)
	}
	if n := f.writes(); n != writeBurst+2 {
		t.Errorf("%d writes, want %d", n, writeBurst+2)
	}
}

// TestNoNews: a creation and a deletion at the same moment leave the numbers as they
// were. Nothing is written, unless to confirm the volume.
func TestNoNews(t *testing.T) {
	for _, confirming := range []bool{false, true} {
		t.Run(fmt.Sprintf("confirming=%t", confirming), func(t *testing.T) {
			f := start(t, Config{RefreshDelay: 300 * time.Millisecond, Confirming: confirming}, 100)
			f.claim("a", "10Gi")
			expect := f.expectReport
			if confirming {
				expect = func(pools ...int64) { f.expectConfirmed("a", pools...) }
			}
			expect(90)
			writes := f.writes()
			if err := f.client.CoreV1().PersistentVolumeClaims("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			f.claim("b", "10Gi")
			if confirming {
				f.expectConfirmed("b", 90)
				return
			}
			time.Sleep(time.Second)
			if n := f.writes() - writes; n != 0 {
				t.Errorf("%d writes, want none", n)
			}
		})
	}
}

// TestConfirmation: what is confirmed goes on, becomes invalid when an older version takes
// over, and valid again.
func TestConfirmation(t *testing.T) {
	f := start(t, Config{Confirming: true}, 100)
	f.expectConfirmed("", 100)
	f.claim("a", "10Gi")
	f.expectConfirmed("a", 90)
	f.claim("b", "10Gi")
	f.expectConfirmed("b", 80)

	f.driver.Confirm(false)
	f.claim("c", "10Gi")
	f.eventually(func() error {
		if _, err := capacity.ReflectedVolumes(f.object()); !errors.Is(err, capacity.ErrOutdated) {
			return fmt.Errorf("got %v, want an outdated confirmation", err)
		}
		return nil
	})
	f.driver.Confirm(true)
	f.driver.Publish()
	f.expectConfirmed("c", 70)
}

// TestConfirmedBefore: a volume that is created after the numbers were taken is in none of
// what they confirm. A volume of another class is of no interest.
func TestConfirmedBefore(t *testing.T) {
	f := start(t, Config{Confirming: true, WritesPerSecond: 1, RefreshDelay: time.Hour}, 100)
	for f.driver.limiter.Allow() { // the next write waits
	}
	f.claim("a", "10Gi")
	f.eventually(func() error { return f.provisioned(1) })
	f.driver.Publish()
	f.eventually(func() error {
		if f.driver.limiter.Tokens() >= 0 {
			return errors.New("no write waits")
		}
		return nil
	})
	f.claim("b", "10Gi")
	f.eventually(func() error { return f.provisioned(2) })
	f.expectConfirmed("a", 90)

	f.driver.Publish()
	f.expectConfirmed("b", 80)
	writes := f.writes()
	if _, err := f.client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: "other", ClaimRef: &corev1.ObjectReference{UID: "b"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	calls := f.driver.Calls()
	f.driver.Publish()
	f.eventually(func() error {
		if f.driver.Calls() == calls {
			return errors.New("nobody has looked what is free")
		}
		return nil
	})
	f.claim("c", "10Gi")
	f.eventually(func() error { return f.provisioned(3) })
	f.driver.Publish()
	f.expectConfirmed("c", 70)
	if n := f.writes() - writes; n != 1 {
		t.Errorf("%d writes, want one", n)
	}
}

// TestRecreated: the object of the same name is another one.
func TestRecreated(t *testing.T) {
	f := start(t, Config{Faults: func() Fault { return Recreated }}, 100)
	f.claim("a", "10Gi")
	f.expectReport(90)
	if n := f.writes(); n != 0 {
		t.Errorf("%d updates, want none", n)
	}
}

// TestVolumeDelay: what is free gets published before there is a PersistentVolume.
func TestVolumeDelay(t *testing.T) {
	f := start(t, Config{VolumeDelay: time.Second, Confirming: true}, 100)
	f.claim("a", "10Gi")
	f.expectConfirmed("", 90)
	if n := f.driver.Provisioned(); n != 0 {
		t.Errorf("%d PersistentVolumes, want none so far", n)
	}
	f.expectConfirmed("a", 90)
}

// TestFailure: a volume for which there is no room is counted, and takes none.
func TestFailure(t *testing.T) {
	f := start(t, Config{}, 100)
	f.claim("a", "60Gi")
	f.expectReport(40)
	f.claim("b", "60Gi")
	f.eventually(func() error {
		if n := f.driver.Failed(); n != 1 {
			return fmt.Errorf("%d volumes had no room, want 1", n)
		}
		return nil
	})
	f.expectReport(40)
}

// TestOverlapping: two objects for one class and segment are the same.
func TestOverlapping(t *testing.T) {
	f := start(t, Config{Overlapping: 2}, 100)
	f.claim("a", "10Gi")
	for _, name := range []string{"class-0", "class-0-1"} {
		f.eventually(func() error {
			object, err := f.client.StorageV1().CSIStorageCapacities(Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && object.Capacity.Value() != 90<<30 {
				err = fmt.Errorf("%s has %v, want 90Gi", name, object.Capacity)
			}
			return err
		})
	}
}

// TestSegmentsOfClasses: a volume of one class changes nothing of another one that has pools of its own.
func TestSegmentsOfClasses(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	f := startWith(t, client, Config{Classes: []string{"other", "class"}, Segments: []Segment{{Class: "other", Pools: GiB(100)}, {Class: "class", Pools: GiB(100)}}})
	f.claim("a", "10Gi")
	for name, want := range map[string]int64{"other-0": 100, "class-1": 90} {
		f.eventually(func() error {
			object, err := client.StorageV1().CSIStorageCapacities(Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := object.Capacity.Value() >> 30; got != want || f.driver.Provisioned() != 1 {
				return fmt.Errorf("%s has %d GiB after %d volumes, want %d after one", name, got, f.driver.Provisioned(), want)
			}
			return nil
		})
	}
	if n := f.writes(); n != 1 {
		t.Errorf("%d writes, want one", n)
	}
}
