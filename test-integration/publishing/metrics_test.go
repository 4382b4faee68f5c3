// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"context"
	"fmt"

	"k8s.io/component-base/metrics/testutil"

	"capacityv2.internal/test-integration/clustertest"
)

// metrics are those of a program at one moment.
type metrics testutil.Metrics

func metricsOf(ctx context.Context, url string) (metrics, error) {
	text, err := clustertest.Get(ctx, url)
	if err != nil {
		return nil, err
	}
	all := testutil.NewMetrics()
	if err := testutil.ParseMetrics(string(text), &all); err != nil {
		return nil, err
	}
	return metrics(all), nil
}

// sum returns that of the samples of a metric whose labels include those that are given as pairs of name
// and value. No such sample is an error.
func (m metrics) sum(name string, labels ...string) (float64, error) {
	sum, found := 0.0, false
	for _, sample := range m[name] {
		matches := true
		for i := 0; i < len(labels); i += 2 {
			matches = matches && string(sample.Metric[testutil.LabelName(labels[i])]) == labels[i+1]
		}
		if matches {
			sum, found = sum+float64(sample.Value), true
		}
	}
	if !found {
		return 0, fmt.Errorf("no metric %s with the labels %q", name, labels)
	}
	return sum, nil
}
