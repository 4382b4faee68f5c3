package cluster

import (
	"slices"
	"testing"
)

func TestParseServing(t *testing.T) {
	for requests, want := range map[string]struct{ pending, missing []string }{
		"": {missing: []string{"node1", "node2"}},
		"csr-1 system:node:node1 yes\ncsr-2 system:node:node2 \n":                              {pending: []string{"csr-2"}},
		"csr-2 system:node:node2 yes\n":                                                        {missing: []string{"node1"}},
		"csr-1 system:node:node1 yes\ncsr-2 system:node:node2 yes\ncsr-3 system:node:node2 \n": {pending: []string{"csr-3"}},
	} {
		pending, missing := parseServing(requests, 2)
		if !slices.Equal(pending, want.pending) || !slices.Equal(missing, want.missing) {
			t.Errorf("%q: pending %q, missing %q", requests, pending, missing)
		}
	}
}
