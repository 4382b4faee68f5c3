package central

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"capacityv2.internal/test-integration/clustertest"
)

// meter counts what one watcher of CSIStorageCapacity gets.
type meter struct{ events, objects, wire atomic.Int64 }

// traffic is what a watcher got.
type traffic struct {
	events int64
	// objects are bytes of the watch, wire those that the connection has read, with HTTP and TLS.
	objects, wire int64
}

func (m *meter) read() traffic { return traffic{m.events.Load(), m.objects.Load(), m.wire.Load()} }

// startMeter watches all objects from now on, on a connection of its own. It ends with the test.
func startMeter(c *clustertest.Cluster, contentType string) *meter {
	c.Helper()
	m := &meter{}
	config := rest.CopyConfig(c.RESTConfig())
	config.AcceptContentTypes, config.ContentType = contentType, contentType
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return meteredConn{conn, &m.wire}, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return meteredTransport{next, &m.objects} })
	client, err := kubernetes.NewForConfig(config)
	c.ExpectNoError(err, "client of the watcher")
	list, err := client.StorageV1().CSIStorageCapacities(metav1.NamespaceAll).List(c, metav1.ListOptions{})
	c.ExpectNoError(err, "list capacity")
	watch, err := client.StorageV1().CSIStorageCapacities(metav1.NamespaceAll).Watch(c, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	c.ExpectNoError(err, "watch capacity")
	var watching sync.WaitGroup
	watching.Go(func() {
		for range watch.ResultChan() {
			m.events.Add(1)
		}
	})
	c.Cleanup(func() {
		watch.Stop()
		watching.Wait()
	})
	return m
}

type meteredConn struct {
	net.Conn
	read *atomic.Int64
}

func (m meteredConn) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.read.Add(int64(n))
	return n, err
}

type meteredTransport struct {
	http.RoundTripper
	read *atomic.Int64
}

func (m meteredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = meteredBody{response.Body, m.read}
	}
	return response, err
}

type meteredBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (m meteredBody) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	m.read.Add(int64(n))
	return n, err
}
