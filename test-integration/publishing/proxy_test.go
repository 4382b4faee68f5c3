// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"bytes"
	"io"
	"net/http"
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
	p := &proxy{writes: newPoint()}
	_, config := clustertest.StartProxy(c.TContext.TContext, c.RESTConfig(), func(next http.Handler) http.Handler {
		p.server = next
		return p
	})
	return p, config
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
