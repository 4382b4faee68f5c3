// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// StartProxy starts a way to an API server, until the test ends, and returns how it is reached. wrap gets the handler that
// passes requests on.
func StartProxy(tCtx ktesting.TContext, config *rest.Config, wrap func(next http.Handler) http.Handler) (*httptest.Server, *rest.Config) {
	tCtx.Helper()
	target, err := url.Parse(config.Host)
	tCtx.ExpectNoError(err, "parse the address of the API server")
	transport, err := rest.TransportFor(config)
	tCtx.ExpectNoError(err, "connect to the API server")
	server := httptest.NewServer(wrap(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1, // watches
	}))
	tCtx.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server, &rest.Config{Host: server.URL}
}
