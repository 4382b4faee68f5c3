// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// provisionerPort is where a provisioner serves its metrics.
const provisionerPort = 9812

// provisionersAnswer returns an error for each provisioner that does not serve its metrics.
func (c *Cluster) provisionersAnswer(ctx context.Context) error {
	pods, err := c.driverPods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, pod := range pods {
		if _, err := c.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(provisionerPort), "metrics", nil).DoRaw(ctx); err != nil {
			errs = append(errs, fmt.Errorf("metrics of the provisioner in pod %s: %w", pod.Name, err))
		}
	}
	return errors.Join(errs...)
}
