// SPDX-License-Identifier: Apache-2.0

package publishing

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

// link is the way of a provisioner to the API server.
type link struct {
	server *httptest.Server
	next   http.Handler
	// isCut has everything fail, and isForgotten the next watch of classes: the server does not know the version from which it
	// is to go on.
	isCut, isForgotten atomic.Bool
}

// startLink starts one, until the test ends, and returns how it is reached.
func startLink(tCtx ktesting.TContext, config *rest.Config) (*link, *rest.Config) {
	tCtx.Helper()
	l := &link{}
	server, config := clustertest.StartProxy(tCtx, config, func(next http.Handler) http.Handler {
		l.next = next
		return l
	})
	l.server = server
	return l, config
}

func (l *link) cut() {
	l.isCut.Store(true)
	l.server.CloseClientConnections()
}

// mend lets the provisioner go on. It has to list all classes again.
func (l *link) mend() {
	l.isForgotten.Store(true)
	l.isCut.Store(false)
}

func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	isWatch := strings.HasSuffix(r.URL.Path, "/storageclasses") && query.Get("watch") != "" && query.Get("sendInitialEvents") != "true"
	switch {
	case l.isCut.Load():
		http.Error(w, "the test has cut the link", http.StatusServiceUnavailable)
	case isWatch && l.isForgotten.CompareAndSwap(true, false):
		http.Error(w, "the test has refused the watch", http.StatusGone)
	default:
		l.next.ServeHTTP(w, r)
	}
}
