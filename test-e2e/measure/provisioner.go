package measure

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// provisionerPort is where a provisioner serves its metrics.
const provisionerPort = 9812

// provisionerMetrics returns the pages of all provisioners, by their pods. Of those that do not answer,
// it has none, and the error.
func (c *Cluster) provisionerMetrics(ctx context.Context) (map[string][]byte, error) {
	set, err := c.daemonSet(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := c.CoreV1().Pods(set.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector)})
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var errs []error
	for _, pod := range pods.Items {
		page, err := c.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(provisionerPort), "metrics", nil).DoRaw(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("metrics of the provisioner in pod %s: %w", pod.Name, err))
			continue
		}
		pages[pod.Name] = page
	}
	return pages, errors.Join(errs...)
}
