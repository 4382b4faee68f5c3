// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRemoveLink makes a pair in a network namespace of its own.
func TestRemoveLink(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	if err := (Pair{Name: "cap-test", PeerName: "eth0", PeerPID: unix.Gettid()}).Make(); err != nil {
		t.Fatal(err)
	}
	for _, time := range []string{"first", "second"} {
		if err := RemoveLink("cap-test"); err != nil {
			t.Errorf("%s time: %v", time, err)
		}
	}
	if links, err := net.Interfaces(); err != nil || len(links) != 1 {
		t.Errorf("got %v, error %v, want loopback alone", links, err)
	}
}
