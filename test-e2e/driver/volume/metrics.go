package volume

import (
	"github.com/prometheus/client_golang/prometheus"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

var (
	rebuilds = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "reference_driver_rebuilds_total",
		Help: "Volumes that this node was asked for and did not have, by result: done, refused (no room, sent elsewhere, or the old copy cannot be fenced), failed. A call that joins a copy does not count again.",
	}, []string{"result"})
	sizeBytes = prometheus.NewDesc("reference_driver_pool_size_bytes",
		"Bytes that the volumes of a pool may have together.", []string{"pool"}, nil)
	availableBytes = prometheus.NewDesc("reference_driver_pool_available_bytes",
		"Bytes that are left of a pool.", []string{"pool"}, nil)
	volumeCount = prometheus.NewDesc("reference_driver_volumes",
		"Volumes that the node knows, by pool and state.", []string{"pool", "state"}, nil)
)

// Metrics are those of the pools of a node.
type Metrics struct{ Store *pool.Store }

// Describe implements prometheus.Collector.
func (m Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	rebuilds.Describe(descriptions)
	descriptions <- sizeBytes
	descriptions <- availableBytes
	descriptions <- volumeCount
}

// Collect implements prometheus.Collector. It reads the books.
func (m Metrics) Collect(metrics chan<- prometheus.Metric) {
	rebuilds.Collect(metrics)
	rooms, err := m.Store.Rooms(nil)
	if err != nil {
		klog.Background().Error(err, "No metrics of pools")
		return
	}
	for _, r := range rooms {
		metrics <- prometheus.MustNewConstMetric(sizeBytes, prometheus.GaugeValue, float64(r.Pool.Size.Value()), r.Pool.Name)
		metrics <- prometheus.MustNewConstMetric(availableBytes, prometheus.GaugeValue, float64(r.AvailableBytes), r.Pool.Name)
	}
	volumes, err := m.Store.Volumes()
	if err != nil {
		klog.Background().Error(err, "No metrics of volumes")
		return
	}
	type key struct{ pool, state string }
	counts := map[key]int{}
	for _, v := range volumes {
		counts[key{v.Pool, string(v.State)}]++
	}
	for k, n := range counts {
		metrics <- prometheus.MustNewConstMetric(volumeCount, prometheus.GaugeValue, float64(n), k.pool, k.state)
	}
}
