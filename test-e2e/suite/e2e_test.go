// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/component-base/version"
	"k8s.io/kubernetes/test/e2e"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/fixtures"
	"k8s.io/kubernetes/test/utils/image"

	// The specs.
	_ "capacityv2.internal/test-e2e/storagecapacity"
	_ "k8s.io/kubernetes/test/e2e/storage"
	_ "k8s.io/kubernetes/test/e2e/storage/csimock"
	_ "k8s.io/kubernetes/test/e2e/storage/external"

	// What they report when they fail, and how long texts are shown.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/utils/ktesting/format"
)

func TestMain(m *testing.M) {
	showVersion := flag.Bool("version", false, "Displays version information.")
	short := flag.Bool("short-timeouts", false, "Gives up on pods and claims sooner, for clusters on which specs have to fail.")
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	switch {
	case *showVersion:
		fmt.Println(version.Get())
		return
	case framework.TestContext.ListImages:
		listImages()
		return
	case flag.NArg() > 0:
		fmt.Fprintf(os.Stderr, "arguments that are no flags: %q\n", flag.Args())
		os.Exit(2)
	}
	if *short {
		framework.NewFrameworkExtensions = append(framework.NewFrameworkExtensions, shorten)
	}
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	testfiles.AddFileSource(fixtures.GetTestFixturesFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

// listImages prints the images that the specs may ask for. Nobody else has that of
// AgnhostPrivate, and AgnhostPrev is for specs that are not here.
func listImages() {
	for id, config := range image.GetImageConfigs() {
		if id != image.AgnhostPrev && id != image.AgnhostPrivate {
			fmt.Println(config.GetE2EImage())
		}
	}
}

// shorten leaves several times as long as it takes where specs pass.
func shorten(f *framework.Framework) {
	f.Timeouts.PodStartShort, f.Timeouts.ClaimProvisionShort = 40*time.Second, 30*time.Second
}

func TestE2E(t *testing.T) { e2e.RunE2ETests(t) }
