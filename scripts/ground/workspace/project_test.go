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
		"pkg/apis/storage/zz_generated.deepcopy.go":                                                true,
		"pkg/generated/openapi/zz_generated.openapi.go":                                            true,
		"test/declarative_validation/storage/csidriver/zz_generated.validations.v1_test.go":        true,
		"staging/src/k8s.io/api/storage/v1/generated.pb.go":                                        true,
		"staging/src/k8s.io/api/storage/v1/generated.proto":                                        true,
		"staging/src/k8s.io/api/storage/v1/generated.protomessage.pb.go":                           true,
		"staging/src/k8s.io/api/storage/v1/types_swagger_doc_generated.go":                         true,
		"staging/src/k8s.io/api/testdata/HEAD/storage.k8s.io.v1.CSIDriver.pb":                      true,
		"staging/src/k8s.io/api/testdata/v1.36.0/storage.k8s.io.v1.CSIDriver.after_roundtrip.json": true,
		"staging/src/k8s.io/client-go/applyconfigurations/storage/v1/csistoragecapacity.go":        true,
		"staging/src/k8s.io/client-go/applyconfigurations/internal/internal.go":                    true,
		"staging/src/k8s.io/client-go/informers/storage/v1/csidriver.go":                           true,
		"staging/src/k8s.io/client-go/kubernetes/typed/storage/v1/generated_expansion.go":          true,
		"staging/src/k8s.io/client-go/kubernetes/typed/storage/v1/fake/doc.go":                     true,
		"staging/src/k8s.io/client-go/listers/storage/v1/expansion_generated.go":                   true,
		"staging/src/k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/clientset.go": true,
		"staging/src/k8s.io/sample-controller/pkg/generated/informers/externalversions/factory.go": true,
		"staging/src/k8s.io/kubelet/pkg/apis/dra/v1/api_grpc.pb.go":                                true,
		"pkg/kubelet/pod/testing/mocks.go":                                                         true,
		"api/openapi-spec/swagger.json":                                                            true,
		"api/openapi-spec/v3/apis__storage.k8s.io__v1_openapi.json":                                true,
		"api/discovery/aggregated_v2.json":                                                         true,
		"api/api-rules/violation_exceptions.list":                                                  true,
		"test/compatibility_lifecycle/reference/versioned_feature_list.yaml":                       true,
		"test/compatibility_lifecycle/reference/feature_list.md":                                   true,

		"pkg/apis/storage/types.go":                                                        false,
		"pkg/apis/storage/v1/defaults.go":                                                  false,
		"pkg/features/kube_features.go":                                                    false,
		"pkg/generated/openapi/cmd/models-schema/main.go":                                  false,
		"pkg/generated/openapi/openapi_test.go":                                            false,
		"staging/src/k8s.io/api/storage/v1/types.go":                                       false,
		"staging/src/k8s.io/api/roundtrip_test.go":                                         false,
		"staging/src/k8s.io/client-go/kubernetes/doc.go":                                   false,
		"staging/src/k8s.io/client-go/kubernetes/typed/core/v1/pod_expansion.go":           false,
		"staging/src/k8s.io/client-go/kubernetes/typed/core/v1/fake/fake_pod_expansion.go": false,
		"staging/src/k8s.io/client-go/listers/generic_helpers.go":                          false,
		"staging/src/k8s.io/client-go/listers/rbac/OWNERS":                                 false,
		"staging/src/k8s.io/client-go/rest/client.go":                                      false,
		"staging/src/k8s.io/kubelet/pkg/apis/dra/v1/api.proto":                             false,
		"api/openapi-spec/OWNERS":                                                          false,
		"api/api-rules/README.md":                                                          false,
		"pkg/scheduler/testdata/HEAD/notes.md":                                             false,
	} {
		if got := project.Generated(path); got != want {
			t.Errorf("Generated(%q) = %v, want %v", path, got, want)
		}
	}
}
