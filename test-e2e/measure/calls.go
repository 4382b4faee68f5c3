package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// provisionerPort is where a provisioner serves its metrics.
	provisionerPort = 9812
	// calls is its metric of calls of the driver.
	calls = "csi_sidecar_operations_seconds"
)

// CapacityCalls returns how often the provisioners that run have called GetCapacity.
func (c *Cluster) CapacityCalls(ctx context.Context) (int, error) {
	pages, err := c.provisionerMetrics(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for pod, page := range pages {
		here, err := capacityCalls(page)
		if err != nil {
			return 0, fmt.Errorf("metrics of the provisioner in pod %s: %w", pod, err)
		}
		n += here
	}
	return n, nil
}

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

// capacityCalls counts the calls of GetCapacity on a page of metrics.
func capacityCalls(page []byte) (int, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, metric := range families[calls].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "method_name" && strings.HasSuffix(label.GetValue(), "/GetCapacity") {
				n += int(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return n, nil
}
