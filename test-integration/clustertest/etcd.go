// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
)

// etcdURL is that of the etcd of the tests, and etcd is connected to it.
var (
	etcdURL string
	etcd    *clientv3.Client
)

// startEtcd starts it on a socket in a folder, so that it meets nobody else's. What it stores need not outlive a power failure.
func startEtcd(dir string) (stop func() error, err error) {
	etcdURL = "unix://" + filepath.Join(dir, "etcd.sock")
	process, err := startProcess("etcd", filepath.Join(dir, "etcd.log"), nil,
		"--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+etcdURL,
		// Nobody asks for these two, and the usual ports may be those of somebody's cluster.
		"--advertise-client-urls=http://127.0.0.111:0", "--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn", "--quota-backend-bytes=8589934592")
	if err != nil {
		return nil, err
	}
	if etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}}); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, programStartTimeout, true, func(ctx context.Context) (bool, error) {
		if err, ended := process.Ended(); ended {
			return false, fmt.Errorf("it has ended: %v", err)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := etcd.Get(ctx, "/")
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w; it says: %s", err, process.Log())
	}
	return func() error {
		etcd.Close()
		return process.end()
	}, nil
}

// Storage is a part of the tests' etcd.
type Storage struct{ prefix string }

// NewStorage returns one of its own. Servers that are started with the same storage see the same objects.
func NewStorage() *Storage { return &Storage{prefix: "/" + string(uuid.NewUUID())} }
