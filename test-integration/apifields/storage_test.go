// SPDX-License-Identifier: Apache-2.0

package apifields

import (
	"bytes"
	"path"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const (
	// fieldNumber is the number of both fields. A stock API server must not
	// take it for a field of its own, see docs on the API.
	fieldNumber = 5925
	// specNumber is CSIDriver.spec.
	specNumber = 2
	// rawNumber is the object in the envelope of everything in etcd.
	rawNumber = 2
)

// TestStoredFieldNumbers checks the numbers under which the fields are in etcd.
func TestStoredFieldNumbers(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := clustertest.BorrowServer(tCtx, clustertest.Options{})
	createCapacity(tCtx, server.Client, newCapacity("stored", "100Gi", "20Gi"))
	createDriver(tCtx, server.Client, newDriver("stored.example.com", new(true)))

	capacity := stored(tCtx, server, "csistoragecapacities", ns, "stored")
	if n := len(fields(tCtx, capacity)[fieldNumber]); n != 2 {
		tCtx.Errorf("CSIStorageCapacity in etcd has %d fields with number %d, want one for each of 2 pools", n, fieldNumber)
	}
	driver := stored(tCtx, server, "csidrivers", "stored.example.com")
	spec := fields(tCtx, driver)[specNumber]
	if len(spec) != 1 {
		tCtx.Fatalf("CSIDriver in etcd has %d specs", len(spec))
	}
	if n := len(fields(tCtx, spec[0])[fieldNumber]); n != 1 {
		tCtx.Errorf("CSIDriver.spec in etcd has %d fields with number %d, want 1", n, fieldNumber)
	}
}

// stored returns an object's protobuf message from etcd.
func stored(tCtx ktesting.TContext, server *clustertest.Server, key ...string) []byte {
	tCtx.Helper()
	full := path.Join(append([]string{"/", server.Prefix}, key...)...)
	response, err := server.Etcd.Get(tCtx, full)
	if err != nil || len(response.Kvs) != 1 {
		tCtx.Fatalf("get %s from etcd: %d values, error %v", full, len(response.Kvs), err)
	}
	envelope, ok := bytes.CutPrefix(response.Kvs[0].Value, []byte("k8s\x00"))
	if !ok {
		tCtx.Fatalf("%s is not protobuf", full)
	}
	raw := fields(tCtx, envelope)[rawNumber]
	if len(raw) != 1 {
		tCtx.Fatalf("%s has %d objects", full, len(raw))
	}
	return raw[0]
}

// fields splits a message into the values of each field number.
func fields(tCtx ktesting.TContext, message []byte) map[protowire.Number][][]byte {
	tCtx.Helper()
	all := map[protowire.Number][][]byte{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			tCtx.Fatalf("protobuf tag: %v", protowire.ParseError(n))
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			tCtx.Fatalf("protobuf value: %v", protowire.ParseError(n))
		}
		value := message[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		all[number] = append(all[number], value)
		message = message[n:]
	}
	return all
}
