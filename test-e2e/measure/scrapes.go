package measure

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// scrapeInterval is the time between two scrapes.
const scrapeInterval = 2 * time.Second

// Scrape writes the metrics of schedulers and provisioners to a new folder, in the way that
// test-integration/promcheck reads, until the context ends. What does not answer is left out, as
// Prometheus does.
func (c *Cluster) Scrape(ctx context.Context, dir string, schedulers ...*Process) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	begin, tick := time.Now(), time.NewTicker(scrapeInterval)
	defer tick.Stop()
	for {
		seconds := int(time.Since(begin).Seconds())
		pages, _ := c.provisionerMetrics(ctx) // some of them
		for pod, page := range pages {
			if err := writePage(dir, seconds, "csi-provisioner@"+pod, page); err != nil {
				return err
			}
		}
		for i, s := range schedulers {
			if page, err := s.metrics(ctx); err == nil {
				if err := writePage(dir, seconds, fmt.Sprintf("kube-scheduler@%d", i+1), page); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func writePage(dir string, seconds int, of string, page []byte) error {
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%s.txt", seconds, of)), page, 0o644)
}

// local asks programs on this machine, which sign their certificates themselves.
var local = &http.Client{Timeout: scrapeInterval, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// metrics returns those of the scheduler.
func (p *Process) metrics(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", p.port), nil)
	if err != nil {
		return nil, err
	}
	response, err := local.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of the scheduler: %s", response.Status)
	}
	return io.ReadAll(response.Body)
}
