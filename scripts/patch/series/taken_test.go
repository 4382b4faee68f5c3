// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/run"
)

func TestTakenNames(t *testing.T) {
	repo := newTree(t, map[string]string{
		"staging/src/k8s.io/api/storage/v1/generated.proto": "optional string podName = 5925;\n",
		"pkg/features/kube_features.go":                     "CSIStorageCapacityV2X featuregate.Feature\n",
	})
	taken, err := TakenNames(t.Context(), repo, []string{"CSIStorageCapacityV2", "5925"}, []string{"pkg/features/*.go", "staging/src/k8s.io/api/storage/*.proto"})
	if err != nil {
		t.Fatal(err)
	}
	if len(taken) != 1 || !strings.HasPrefix(taken[0], "5925 in ") {
		t.Errorf("taken: %q, want the number alone", taken)
	}
	if taken, err := TakenNames(t.Context(), repo, []string{"5925"}, []string{"pkg/features/*.go", "csi.proto"}); !run.IsRefusal(err) || !strings.Contains(err.Error(), "csi.proto") {
		t.Errorf("a pattern matches no file: %q, error %v", taken, err)
	}
}
