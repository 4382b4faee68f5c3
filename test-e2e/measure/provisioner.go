package measure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// provisionerPort is where a provisioner serves its metrics.
const provisionerPort = 9812

// provisionerMetrics returns the pages of all provisioners, by their pods. Of those that do not answer,
// it has none, and the error.
func (c *Cluster) provisionerMetrics(ctx context.Context) (map[string][]byte, error) {
	pods, err := c.driverPods(ctx)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	var errs []error
	for _, pod := range pods {
		page, err := c.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(provisionerPort), "metrics", nil).DoRaw(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("metrics of the provisioner in pod %s: %w", pod.Name, err))
			continue
		}
		pages[pod.Name] = page
	}
	return pages, errors.Join(errs...)
}
