// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// listenAndPair pairs the connections of the socket with those of an address, such as
// tcp://:9000, until the context ends.
func listenAndPair(ctx context.Context, socket net.Listener, address string) error {
	defer socket.Close()
	network, address, ok := strings.Cut(address, "://")
	if !ok {
		return fmt.Errorf("--proxy-endpoint has no network; expected an address such as tcp://:9000")
	}
	far, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	return pair(ctx, socket, far)
}

// pair connects each client of near with one connection that far has accepted. The test
// program opens some in advance, so that a client need not wait for one.
func pair(ctx context.Context, near, far net.Listener) error {
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	for {
		client, err := near.Accept()
		if err == nil {
			var driver net.Conn
			if driver, err = far.Accept(); err == nil {
				klog.V(5).InfoS("New pair of connections", "driver", driver.RemoteAddr())
				go join(ctx, client, driver)
				continue
			}
			client.Close()
		}
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
}

// join copies in both directions until one side ends, and then ends the other.
func join(ctx context.Context, a, b net.Conn) {
	end := sync.OnceFunc(func() { a.Close(); b.Close() })
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	for _, c := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			defer end()
			_, _ = io.Copy(c[0], c[1]) // how it ends is for the two sides to know
		})
	}
	both.Wait()
}
