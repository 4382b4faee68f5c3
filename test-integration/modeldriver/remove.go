package modeldriver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Remove deletes what [Start] has created, when the driver has ended. Volumes
// stay. What does not exist is no error.
func Remove(ctx context.Context, client kubernetes.Interface, config Config) error {
	var errs []error
	note := func(err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, class := range config.Classes {
		for segment := range config.Segments {
			name := object{class: class, segment: segment}.name()
			note(client.StorageV1().CSIStorageCapacities(Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		}
		note(client.StorageV1().StorageClasses().Delete(ctx, class, metav1.DeleteOptions{}))
	}
	note(client.StorageV1().CSIDrivers().Delete(ctx, config.Name, metav1.DeleteOptions{}))
	return errors.Join(errs...)
}
