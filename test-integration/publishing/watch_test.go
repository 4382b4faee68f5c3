// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// smallVolume is the size of volumes here, in bytes.
const smallVolume = 1 << 20

// createVolumes has volumes created, one after the other on each of the nodes, in the class of all. The next one
// begins when an object shows the last one.
func (p *publisher) createVolumes(prefix string, nodes []string) {
	p.Helper()
	for i, node := range nodes {
		name := fmt.Sprintf("%s-%d", prefix, i)
		_, err := p.Client().CoreV1().PersistentVolumeClaims(p.Namespace).Create(p, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{volume.AnnSelectedNode: node}},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: new(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(smallVolume, resource.BinarySI)}},
			},
		}, metav1.CreateOptions{})
		p.ExpectNoError(err, "create claim")
		p.Eventually(func(context.Context) error {
			if claim := p.Claim(name); claim.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("claim %s is %s", name, claim.Status.Phase)
			}
			return nil
		})
		p.waitForShown(p.driver.Free(node)[0])
	}
}

// waitForShown waits until the objects of one node show so many bytes. Only one node may have as many.
func (p *publisher) waitForShown(bytes int64) {
	p.Helper()
	p.Eventually(func(context.Context) error {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		n := 0
		for _, shown := range p.shown {
			if shown == bytes {
				n++
			}
		}
		if want := p.objects / p.nodes; n < want {
			return fmt.Errorf("%d objects show %d bytes, want %d", n, bytes, want)
		}
		return nil
	})
}

// setDifferent sets what is free on each node, differently.
func (p *publisher) setDifferent() {
	for i := range p.nodes {
		p.driver.SetPools(fmt.Sprintf("node-%d", i+1), int64(i+1)<<40)
	}
}

// waitForDifferent waits until all objects show that, and the provisioner has nothing left to do.
func (p *publisher) waitForDifferent() {
	p.Helper()
	for i := range p.nodes {
		p.waitForShown(int64(i+1) << 40)
	}
}

// spread returns node-1 to node-n, again and again.
func spread(volumes, nodes int) []string {
	var all []string
	for i := range volumes {
		all = append(all, fmt.Sprintf("node-%d", i%nodes+1))
	}
	return all
}

// settle is how long nothing more has to come after the last volume was shown. It is longer than the poll
// interval in the test.
const settle = 2 * time.Second

// TestWatchTraffic: with a confirmation, one watcher gets at most two events for each volume and class: one when the volume is
// there, and one when the controller of volumes has written it, because that may be the first version that a scheduler sees.
func TestWatchTraffic(t *testing.T) {
	const nodes, classes, volumes = 10, 2, 30
	p := newPublisher(clustertest.StartWith(ktesting.Init(t), clustertest.Options{NoScheduler: true}), nodes, classes)
	p.setDifferent()
	p.start(variant{qps: 200}, "--capacity-poll-interval=1s")
	p.waitForDifferent()
	expectPools(p.Cluster, classes, 1<<40)
	before := p.seen()
	p.createVolumes("volume", spread(volumes, nodes))
	time.Sleep(settle)
	if got := p.seen() - before; got < volumes || got > 2*classes*volumes {
		t.Errorf("%d events for %d volumes of drivers with %d classes, want two for each volume and class at most", got, volumes, classes)
	}
	expectNoRefusals(t, p.driver)
}
