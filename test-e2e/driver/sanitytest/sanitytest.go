// SPDX-License-Identifier: Apache-2.0

// Package sanitytest runs csi-sanity on drivers.
package sanitytest

import (
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// Run runs it once in a process, with each of some configurations. want is how many specs have to pass for each: one that a
// driver does not say it can do is skipped.
func Run(t *testing.T, want int, configs map[string]sanity.TestConfig) {
	t.Helper()
	for name, config := range configs {
		ginkgo.Describe(name, func() { sanity.GinkgoTest(&config) })
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	counts := map[types.SpecState]int{}
	ginkgo.ReportAfterSuite("counts", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt {
				counts[spec.State]++
			}
		}
	})
	ginkgo.RunSpecs(t, "csi-sanity")
	t.Logf("csi-sanity: %d passed, %d skipped, %d pending, %d failed",
		counts[types.SpecStatePassed], counts[types.SpecStateSkipped], counts[types.SpecStatePending], counts[types.SpecStateFailed])
	if counts[types.SpecStatePassed] < want*len(configs) {
		t.Errorf("%d specs passed; expected at least %d: does the driver still say what it can do?", counts[types.SpecStatePassed], want*len(configs))
	}
}
