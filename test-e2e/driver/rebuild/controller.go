// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// Controller does what [Names.Next] says for all volumes of a driver. What it watches says where to look; what it does
// follows from what the API server says then. Two at once do no harm.
type Controller struct {
	API
	loop    Loop
	volumes corelisters.PersistentVolumeLister
	nodes   corelisters.NodeLister
}

// NewController returns the controller of a driver.
func NewController(api API) *Controller {
	loop := NewLoop(api.Client)
	core := loop.Core().V1()
	return &Controller{API: api, loop: loop, volumes: core.PersistentVolumes().Lister(), nodes: core.Nodes().Lister()}
}

// Run runs until the context ends. What is there at its start counts as changed: nodes may have gone while nobody watched.
func (c *Controller) Run(ctx context.Context) error {
	core := c.loop.Core().V1()
	err := errors.Join(
		c.loop.On(core.PersistentVolumes().Informer(), func(_, now any) { c.loop.Add(now.(*corev1.PersistentVolume).Name) }),
		c.loop.On(core.PersistentVolumeClaims().Informer(), func(before, now any) {
			claim := now.(*corev1.PersistentVolumeClaim)
			if old, ok := before.(*corev1.PersistentVolumeClaim); !ok || old.Annotations[storagehelpers.AnnSelectedNode] != claim.Annotations[storagehelpers.AnnSelectedNode] {
				c.loop.Add(claim.Spec.VolumeName)
			}
		}),
		c.loop.On(core.Nodes().Informer(), func(before, now any) {
			if old, ok := before.(*corev1.Node); ok && nodeOf(old) == nodeOf(now.(*corev1.Node)) {
				return
			}
			volumes, _ := c.volumes.List(labels.Everything())
			for _, pv := range volumes {
				c.loop.Add(pv.Name)
			}
		}))
	if err != nil {
		return err
	}
	c.loop.Run(ctx, 1, c.place)
	return nil
}

// errWaits is returned for a volume that is released, and of which a home can be used, or a copy is complete: a pod that comes
// to run can change what is to be done, and nobody watches pods.
var errWaits = errors.New("it is released, and waits for a pod")

// place changes a volume until there is nothing to change.
func (c *Controller) place(ctx context.Context, name string) error {
	pv, err := c.volumes.Get(name)
	if err != nil || !c.IsOurs(pv) || c.isSettled(c.VolumeOf(pv)) {
		return nil // A cache does not fail: it is not there.
	}
	v, err := c.Volume(ctx, name, pv.Spec.CSI.VolumeHandle)
	for err == nil && v.PV != nil && v.PV.DeletionTimestamp == nil {
		cluster, err := c.Cluster(ctx, v)
		if err != nil {
			return err
		}
		_, isUsable := cluster.present(v.Homes)
		isOpen := v.Affinity == nil && (isUsable || v.Copied.Node != "")
		if !cluster.IsClaimGone && (isOpen || v.IsUnconfirmed) {
			err = c.addPods(ctx, v, &cluster)
		}
		change := c.Next(v, cluster)
		switch {
		case err != nil:
			return err
		case change == nil && isOpen && !cluster.IsClaimGone:
			return errWaits
		case change == nil:
			return nil
		}
		if v, err = c.Patch(ctx, v, change); err != nil {
			return err
		}
	}
	return err
}

// isSettled tells whether a volume is on a usable node by the caches, so that the API server need not be asked.
func (c *Controller) isSettled(v Volume) bool {
	nodes, _ := nodesOf(append([]string{v.InUse.Node}, v.Affinity...), c.nodes.Get)
	isUsable := slices.ContainsFunc(v.Affinity, func(name string) bool { return nodes[name].IsUsable })
	return isUsable && !v.IsUnconfirmed && v.Begun.Node == "" && !nodes[v.InUse.Node].IsOff
}
