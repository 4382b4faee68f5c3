package central

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"capacityv2.internal/test-integration/clustertest"
)

// proxy is the way of a program to the API server. It can hold up what the program writes about
// capacity.
type proxy struct {
	server  http.Handler
	holding atomic.Bool
	// held has the writes that are held up. Each goes on when its channel is closed, or never, if the
	// program ends.
	held chan chan struct{}
}

// startProxy starts one, until the test ends, and returns how it is reached.
func startProxy(c *clustertest.Cluster) (*proxy, *rest.Config) {
	c.Helper()
	config := c.RESTConfig()
	target, err := url.Parse(config.Host)
	c.ExpectNoError(err, "parse the address of the API server")
	transport, err := rest.TransportFor(config)
	c.ExpectNoError(err, "connect to the API server")
	p := &proxy{held: make(chan chan struct{})}
	p.server = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1, // watches
	}
	server := httptest.NewServer(p)
	c.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return p, &rest.Config{Host: server.URL}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.holding.Load() && r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/csistoragecapacities") {
		// The server only notices the end of a program when it has read what that has sent.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		goOn := make(chan struct{})
		select {
		case p.held <- goOn:
		case <-r.Context().Done():
			return
		}
		select {
		case <-goOn:
		case <-r.Context().Done():
			return
		}
	}
	p.server.ServeHTTP(w, r)
}

// wait waits until a write is held up, and returns what it waits for.
func (p *proxy) wait(c *clustertest.Cluster) (goOn chan struct{}) {
	c.Helper()
	select {
	case goOn = <-p.held:
	case <-time.After(time.Minute):
		c.Fatal("nothing is written about capacity")
	}
	return goOn
}
