// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"slices"
	"testing"
)

func TestSplitFilling(t *testing.T) {
	plain, filling := splitFilling(`k8s.io/kubernetes/pkg/features testing
k8s.io/api k8s.io/apimachinery/pkg/api/apitesting/roundtrip testing
k8s.io/kubernetes/pkg/api/testing  sigs.k8s.io/randfill
k8s.io/kubernetes/pkg/apis/storage/fuzzer
k8s.io/x sigs.k8s.io/randfillers

`)
	if want := []string{"k8s.io/kubernetes/pkg/features", "k8s.io/kubernetes/pkg/apis/storage/fuzzer", "k8s.io/x"}; !slices.Equal(plain, want) {
		t.Errorf("plain: %q, want %q", plain, want)
	}
	if want := []string{"k8s.io/api", "k8s.io/kubernetes/pkg/api/testing"}; !slices.Equal(filling, want) {
		t.Errorf("filling: %q, want %q", filling, want)
	}
}
