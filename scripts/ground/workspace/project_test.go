// SPDX-License-Identifier: Apache-2.0

package workspace

import "testing"

// TestGenerated asks for files of Kubernetes what its project.yaml says.
func TestGenerated(t *testing.T) {
	project, err := Workspace{Root: "../../.."}.Project(Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"pkg/apis/storage/v1/zz_generated.conversion.go":                                           true,
		"staging/src/k8s.io/api/storage/v1/generated.pb.go":                                        true,
		"staging/src/k8s.io/api/testdata/v1.36.0/storage.k8s.io.v1.CSIDriver.after_roundtrip.json": true,
		"staging/src/k8s.io/client-go/applyconfigurations/storage/v1/csistoragecapacity.go":        true,
		"staging/src/k8s.io/client-go/listers/storage/v1/expansion_generated.go":                   true,
		"staging/src/k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/clientset.go": true,
		"pkg/kubelet/pod/testing/mocks.go":                                                         true,
		"api/openapi-spec/swagger.json":                                                            true,

		"pkg/apis/storage/types.go":                                              false,
		"pkg/generated/openapi/openapi_test.go":                                  false,
		"staging/src/k8s.io/client-go/kubernetes/typed/core/v1/pod_expansion.go": false,
		"api/openapi-spec/OWNERS":                                                false,
	} {
		if got := project.Generated(path); got != want {
			t.Errorf("Generated(%q) = %v, want %v", path, got, want)
		}
	}
}
