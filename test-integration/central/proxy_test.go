package central

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"capacityv2.internal/test-integration/clustertest"
)

// proxy is the way of a program to the API server. What the program writes about capacity passes a point.
type proxy struct {
	server http.Handler
	writes *point
}

// startProxy starts one, until the test ends, and returns how it is reached.
func startProxy(c *clustertest.Cluster) (*proxy, *rest.Config) {
	c.Helper()
	config := c.RESTConfig()
	target, err := url.Parse(config.Host)
	c.ExpectNoError(err, "parse the address of the API server")
	transport, err := rest.TransportFor(config)
	c.ExpectNoError(err, "connect to the API server")
	p := &proxy{writes: newPoint()}
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
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/csistoragecapacities") {
		// The server only notices the end of a program when it has read what that has sent.
		body, err := io.ReadAll(r.Body)
		if err != nil || p.writes.pass(r.Context()) != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	p.server.ServeHTTP(w, r)
}
