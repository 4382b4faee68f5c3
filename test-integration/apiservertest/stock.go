package apiservertest

import (
	"bytes"
	"os"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// stockBinaryEnv names the kube-apiserver that was built from the base without
// the series.
const stockBinaryEnv = "STOCK_KUBE_APISERVER"

// StartStock starts the stock kube-apiserver as a process. It is stopped at the
// end of the test, if not earlier. A missing binary fails the test, as does one
// that knows our fields: a skipped or pointless test would look like a passed one.
func StartStock(tCtx ktesting.TContext, storage *storagebackend.Config, extra ...string) *Server {
	tCtx.Helper()
	binary := os.Getenv(stockBinaryEnv)
	if binary == "" {
		tCtx.Fatalf("%s is not set; expected the path of a kube-apiserver built from the unpatched base (make test builds it)", stockBinaryEnv)
	}
	server := StartProgram(tCtx, binary, storage, extra...)
	if server.KnowsFields(tCtx) {
		tCtx.Fatalf("%s=%s knows availableCapacities; expected a kube-apiserver built from the unpatched base", stockBinaryEnv, binary)
	}
	return server
}

// KnowsFields tells whether the schema of the server has our fields.
func (s *Server) KnowsFields(tCtx ktesting.TContext) bool {
	tCtx.Helper()
	schema, err := s.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/storage.k8s.io/v1").DoRaw(tCtx)
	if err != nil {
		tCtx.Fatalf("schema of the kube-apiserver: %v", err)
	}
	return bytes.Contains(schema, []byte(`"availableCapacities"`))
}
