// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"
	"k8s.io/kubernetes/pkg/volume/csi"
)

// StartAttachDetach starts the attach-detach controller, which creates and deletes
// VolumeAttachments. It ends with the test.
func (c *Cluster) StartAttachDetach() {
	c.Helper()
	factory := informers.NewSharedInformerFactory(c.clients.Client(), 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	controller, err := attachdetach.NewAttachDetachController(c, c.clients.Client(),
		core.Pods(), core.Nodes(), core.PersistentVolumeClaims(), core.PersistentVolumes(),
		storage.CSINodes(), storage.CSIDrivers(), storage.VolumeAttachments(),
		csi.ProbeVolumePlugins(), nil, false, 5*time.Second, false, attachdetach.DefaultTimerConfig)
	c.ExpectNoError(err, "create the attach-detach controller")
	factory.StartWithContext(c)
	factory.WaitForCacheSyncWithContext(c)
	c.running.Go(func() { controller.Run(c) })
	c.running.Go(func() {
		<-c.Done()
		factory.Shutdown()
	})
}
