// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"net/http"
	"testing"
)

// TestRelist has watches of a resource begin after Relist.
func TestRelist(t *testing.T) {
	for name, test := range map[string]struct {
		query      string
		status     int
		isRelisted bool
	}{
		"a watch goes on":            {"?watch=true&resourceVersion=5", http.StatusGone, true},
		"a watch begins with a list": {"?watch=true&resourceVersion=5&sendInitialEvents=true", http.StatusOK, true},
		"another request":            {"", http.StatusOK, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &link{}
			l.Relist("pods")
			server := roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/api/v1/pods"+test.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := (&refuser{link: l, next: server}).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.status || l.relisted() != test.isRelisted {
				t.Errorf("status %d, listed again %t; expected %d and %t", response.StatusCode, l.relisted(), test.status, test.isRelisted)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
