package cluster

import (
	"reflect"
	"testing"
)

func TestParseChains(t *testing.T) {
	save := `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:USER - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -j USER
-A KUBE-SERVICES -j KUBE-MARK-MASQ
COMMIT
*filter
:KUBE-FIREWALL - [0:0]
COMMIT
`
	want := []rule{
		{"nat", []string{"-D", "PREROUTING", "-m", "comment", "--comment", "kubernetes service portals", "-j", "KUBE-SERVICES"}},
		{"nat", []string{"-F", "KUBE-SERVICES"}},
		{"filter", []string{"-F", "KUBE-FIREWALL"}},
		{"nat", []string{"-X", "KUBE-SERVICES"}},
		{"filter", []string{"-X", "KUBE-FIREWALL"}},
	}
	if got := parseChains([]byte(save)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestMountsBelow(t *testing.T) {
	mounts := "tmpfs /var/lib/kubelet/pods/1 tmpfs rw 0 0\ntmpfs /var/lib/kubelet/pods/1/v tmpfs rw 0 0\ntmpfs /var/lib/kubelet2/x tmpfs rw 0 0\n"
	want := []string{"/var/lib/kubelet/pods/1/v", "/var/lib/kubelet/pods/1"}
	if got := mountsBelow(mounts, "/var/lib/kubelet"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
