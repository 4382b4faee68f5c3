// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net/netip"
	"testing"
)

func TestChooseNetwork(t *testing.T) {
	p := netip.MustParsePrefix
	for _, test := range []struct {
		taken []netip.Prefix
		want  string
	}{
		{nil, "10.59.249.0/24"},
		{[]netip.Prefix{p("10.59.249.64/26")}, "10.59.248.0/24"},
		{[]netip.Prefix{p("10.0.0.0/8")}, "172.29.249.0/24"}, // a company's network
		{[]netip.Prefix{p("10.0.0.0/8"), p("172.16.0.0/12"), p("192.168.0.0/16")}, ""},
	} {
		got, err := ChooseNetwork(test.taken)
		if (err == nil) != (test.want != "") || (err == nil && got.String() != test.want) {
			t.Errorf("beside %v: %v, %v, want %q", test.taken, got, err, test.want)
		}
	}
}
