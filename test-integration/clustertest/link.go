// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// errCut is the error of connections over a link that is cut.
var errCut = errors.New("the link to the API server is cut")

// link is the way of one process to the API server. It can be cut, as if the
// process or the server were gone.
type link struct {
	// writing is held by requests that may write. Those that come when it is finished are refused.
	writing     sync.RWMutex
	finished    bool
	mutex       sync.Mutex
	cut, ended  bool
	connections map[net.Conn]bool
	// disconnects is how often all were ended: those that are being made then end, too.
	disconnects int
	// relisting has the resources whose next watch is refused, because the server
	// has forgotten the version from which it is to go on.
	relisting map[string]bool
	// holding is the resource whose writes get no answer, and held is closed by the first of
	// them. over is closed by End.
	holding    string
	held, over chan struct{}
}

// newLink returns a configuration whose connections use a link.
func (c *Cluster) newLink(config *rest.Config) (*link, *rest.Config) {
	l := &link{connections: map[net.Conn]bool{}, over: make(chan struct{})}
	c.links = append(c.links, l)
	config = rest.CopyConfig(config)
	config.Dial = l.dial
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &refuser{link: l, next: next} })
	return l, config
}

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mutex.Lock()
	cut, before := l.cut, l.disconnects
	l.mutex.Unlock()
	if cut {
		return nil, errCut
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.cut || l.disconnects != before {
		conn.Close()
		return nil, errCut
	}
	l.connections[conn] = true
	return &linked{Conn: conn, link: l}, nil
}

// Cut ends all connections, and lets nobody connect until it is mended.
func (l *link) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cut = true
	l.disconnect()
}

// End is [link.Cut] for ever. Requests are refused then instead of failing, because
// the recorder of events would try again for minutes.
func (l *link) End() {
	l.Cut()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.ended {
		l.ended = true
		close(l.over)
	}
}

// Finish returns when the server has answered what it was asked to write. It is not asked any more.
func (l *link) Finish() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.finished = true
}

// WaitForAnswers returns when the server has answered what it is being asked to write.
func (l *link) WaitForAnswers() {
	l.writing.Lock()
	defer l.writing.Unlock()
}

// hasEnded returns whether all requests have to be refused.
func (l *link) hasEnded() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.ended
}

// Mend lets connect again.
func (l *link) Mend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cut = false
}

// Relist ends all connections, and refuses the next watch of these resources.
func (l *link) Relist(resources ...string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.relisting = map[string]bool{}
	for _, resource := range resources {
		l.relisting[resource] = true
	}
	l.disconnect()
}

func (l *link) disconnect() {
	l.disconnects++
	for conn := range l.connections {
		conn.Close()
	}
	clear(l.connections)
}

// refuses tells, once, that the watch of a resource has to be refused.
func (l *link) refuses(resource string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	refuses := l.relisting[resource]
	delete(l.relisting, resource)
	return refuses
}

// relisted returns whether all resources of the last Relist were listed again.
func (l *link) relisted() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return len(l.relisting) == 0
}

// linked is a connection that its link forgets when it ends.
type linked struct {
	net.Conn
	link *link
}

func (c *linked) Close() error {
	c.link.mutex.Lock()
	delete(c.link.connections, c.Conn)
	c.link.mutex.Unlock()
	return c.Conn.Close()
}

// refuser answers some requests in place of the server.
type refuser struct {
	link *link
	next http.RoundTripper
}

func (w *refuser) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return w.write(request)
	}
	if w.link.hasEnded() {
		return answer(request, metav1.StatusReasonForbidden, http.StatusForbidden)
	}
	query := request.URL.Query()
	// A watch that begins with a list lists again by itself: so do informers when a connection is ended in the middle of an event.
	if query.Get("watch") == "" || !w.link.refuses(resourceOf(request.URL.Path)) || query.Get("sendInitialEvents") == "true" {
		return w.next.RoundTrip(request)
	}
	return answer(request, metav1.StatusReasonExpired, http.StatusGone)
}

func (w *refuser) write(request *http.Request) (*http.Response, error) {
	w.link.writing.RLock()
	if w.link.finished || w.link.hasEnded() {
		w.link.writing.RUnlock()
		return answer(request, metav1.StatusReasonForbidden, http.StatusForbidden)
	}
	holds := w.link.holds(request)
	response, err := w.next.RoundTrip(request)
	w.link.writing.RUnlock()
	if holds {
		return w.link.hold(response, err)
	}
	return response, err
}

// answer returns an error as the server would.
func answer(request *http.Request, reason metav1.StatusReason, code int) (*http.Response, error) {
	body, err := runtime.Encode(scheme.Codecs.LegacyCodec(metav1.Unversioned), &metav1.Status{
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: "the test has refused the request",
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprint(code, " ", http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": []string{runtime.ContentTypeJSON}},
		Body:   io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// resourceOf returns the last part of a path such as /api/v1/pods.
func resourceOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }
