package chain

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// patience is how long pods may take to run after the last one was created. It is
// longer than the timeout of reservations.
const patience = 150 * time.Second

// TestChain measures each scenario with each variant, and writes the report.
func TestChain(t *testing.T) {
	if os.Getenv("COMPONENTS") == "" {
		t.Skip("it replaces the scheduler of a cluster of its own: make chain")
	}
	only, err := regexp.Compile(os.Getenv("CHAIN_ONLY"))
	if err != nil {
		t.Fatal(err)
	}
	report := readReport(t)
	for _, s := range settings {
		for _, v := range s.variants() {
			if !only.MatchString(key(s, v)) {
				continue
			}
			t.Run(key(s, v), func(t *testing.T) {
				r := measure(t, s, v)
				t.Logf("%+v", r)
				check(t, s, v, r)
				report.set(s, v, r)
				report.write(t)
			})
		}
	}
}

// check fails for what must not happen, whatever the machine.
func check(t *testing.T, s setting, v variant, r result) {
	t.Helper()
	if r.Left > 0 && s.Churn == 0 {
		t.Errorf("%d pods did not run", r.Left)
	}
	if v.scheduler.Policy == "InFlight" && v.provisioner == "patched" && s.Kill == "" && r.Failed > 0 {
		t.Errorf("%d volumes were asked for where there was no room, want none with confirmation", r.Failed)
	}
}

// measure runs one scenario from an empty cluster.
func measure(t *testing.T, s setting, v variant) result {
	c := connect(t)
	sched := startScheduler(t, v.scheduler) // the pods of the driver need one, too
	c.configure(t, s, v.provisioner)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	tl, err := record(c, c.namespace, stop)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]int{}
	for _, n := range nodes.Items {
		places[n.Name] = s.places()
	}
	if s.Churn > 0 {
		c.churn(t, s)
	} else {
		for i := range s.Pods {
			c.createPod(t, fmt.Sprintf("pod-%d", i))
		}
		if s.Kill != "" {
			c.waitFor(t, patience, func() bool { return tl.decided() >= s.Pods/3 })
			c.kill(t, s.Kill, sched)
		}
	}
	c.waitFor(t, patience, func() bool { return tl.left() == 0 })
	return tl.result(places, time.Now())
}

// churn creates pods at a steady rate, and deletes the oldest one that runs whenever
// there are more than Kept.
func (c *cluster) churn(t *testing.T, s setting) {
	t.Helper()
	tick := time.NewTicker(s.Churn / time.Duration(s.Pods))
	defer tick.Stop()
	for i := range s.Pods {
		c.createPod(t, fmt.Sprintf("pod-%d", i))
		pods, err := c.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		here := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		slices.SortFunc(here, func(a, b corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
		for n := len(here); n > s.Kept; n-- {
			if i := slices.IndexFunc(here, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }); i >= 0 {
				c.deletePod(t, here[i].Name)
				here = slices.Delete(here, i, i+1)
			}
		}
		<-tick.C
	}
}

func (c *cluster) createPod(t *testing.T, name string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(c.class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(volumeSize<<30, resource.BinarySI)}},
		},
	}
	if _, err := c.CoreV1().PersistentVolumeClaims(c.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "pause", Image: "capacityv2.internal/busybox:dev", ImagePullPolicy: corev1.PullNever, Command: []string{"/bin/sleep", "86400"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}},
		},
	}
	if _, err := c.CoreV1().Pods(c.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deletePod(t *testing.T, name string) {
	t.Helper()
	if err := c.CoreV1().Pods(c.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().PersistentVolumeClaims(c.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until a condition holds, and goes on without it after a time: the
// result says what has not happened.
func (c *cluster) waitFor(t *testing.T, timeout time.Duration, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, timeout, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Logf("after %s, it has not happened", timeout)
	}
}
