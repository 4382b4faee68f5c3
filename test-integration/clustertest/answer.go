// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// HoldAnswers keeps the answers to writes of a resource from the scheduler. The server carries the
// writes out. What waits for an answer gets none: the scheduler has to be killed.
func (c *Cluster) HoldAnswers(resource string) {
	l := c.scheduler.link
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.holding, l.held = resource, make(chan struct{})
}

// WaitForHeldAnswer returns when the server has carried out a write of which the scheduler does not
// know.
func (c *Cluster) WaitForHeldAnswer() {
	c.Helper()
	held := c.scheduler.link.held
	c.Eventually(func(context.Context) error {
		select {
		case <-held:
			return nil
		default:
			return errors.New("the scheduler waits for no answer")
		}
	})
}

// holds tells whether a request gets no answer.
func (l *link) holds(request *http.Request) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.holding != "" && request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/"+l.holding+"/")
}

// hold waits until the link has ended, and leaves the answer out.
func (l *link) hold(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	l.mutex.Lock()
	select {
	case <-l.held:
	default:
		close(l.held)
	}
	l.mutex.Unlock()
	<-l.over
	return nil, errCut
}
