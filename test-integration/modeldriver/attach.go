package modeldriver

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watchAttachments has the attachments of the driver attached.
func (d *Driver) watchAttachments(factory informers.SharedInformerFactory) error {
	_, err := factory.Storage().V1().VolumeAttachments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if attachment := obj.(*storagev1.VolumeAttachment); attachment.Spec.Attacher == d.config.Name {
				d.unattached.Add(attachment.Name)
			}
		},
	})
	return err
}

// attach reports that a volume is attached, once it is where the node has access.
func (d *Driver) attach(ctx context.Context, name string) error {
	attachments := d.client.StorageV1().VolumeAttachments()
	attachment, err := attachments.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	volume, err := d.client.CoreV1().PersistentVolumes().Get(ctx, *attachment.Spec.Source.PersistentVolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get volume: %w", err)
	}
	node, err := d.nodes.Get(attachment.Spec.NodeName)
	if err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	if segment := d.segmentWith(volume.Spec.ClaimRef.UID); segment < 0 || segment != d.segmentOf(node) {
		return fmt.Errorf("volume %s is not on %s", volume.Name, node.Name)
	}
	_, err = attachments.Patch(ctx, name, types.MergePatchType, []byte(`{"status": {"attached": true}}`), metav1.PatchOptions{}, "status")
	return err
}
