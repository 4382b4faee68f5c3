package api

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// schedulerPort is where the scheduler of a cluster with its own network serves.
const schedulerPort = "10259"

// schedulerCounter returns the value of a metric of the scheduler, which is on the
// API server's host and takes the same credentials. Its own certificate is not
// signed by anybody.
func (c *cluster) schedulerCounter(t *testing.T, metric string) float64 {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	server.Host = net.JoinHostPort(server.Hostname(), schedulerPort)
	metrics := c.mustKubectl(t, "", "--server="+server.String(), "--insecure-skip-tls-verify", "get", "--raw", "/metrics")
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(metric) + ` (\S+)$`).FindStringSubmatch(metrics)
	if line == nil {
		t.Errorf("the scheduler has no metric %s", metric)
		return 0
	}
	value, err := strconv.ParseFloat(line[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
