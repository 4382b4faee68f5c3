// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"capacityv2.internal/scripts/check/failswithout"
	"capacityv2.internal/scripts/ground/toolchain"
)

// TestFolders checks that CONTRIBUTING.md has a line for each folder of the tooling, and for
// no other.
func TestFolders(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("`scripts/([a-z0-9]+)` ").FindAllStringSubmatch(string(page), -1) {
		named = append(named, m[1])
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, folders) {
		t.Errorf("the page has the folders %v, want %v", named, folders)
	}
}

// TestGoVersion checks that the workflows and the pages name the Go release of the tooling.
func TestGoVersion(t *testing.T) {
	version := strings.TrimPrefix(toolchain.GoVersion, "go")
	for path, want := range map[string]int{"../README.md": 1, "../CONTRIBUTING.md": 1, "../.github/actions/prepare/action.yaml": 1} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`(?:Go|go-version:) (\d+\.\d+\.\d+)`).FindAllStringSubmatch(string(content), -1)
		if len(named) != want {
			t.Errorf("%s names the Go release %d times, want %d", path, len(named), want)
		}
		for _, m := range named {
			if m[1] != version {
				t.Errorf("%s has Go %s, want %s", path, m[1], version)
			}
		}
	}
}

// TestSupport checks that docs/reference/support.md names the versions that are built.
func TestSupport(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/support.md")
	if err != nil {
		t.Fatal(err)
	}
	for module, name := range map[string]string{
		"pins/containerd/go.mod:github.com/containerd/containerd/v2":                         "containerd",
		"pins/runc/go.mod:github.com/opencontainers/runc":                                    "runc",
		"pins/etcd/go.mod:go.etcd.io/etcd/server/v3":                                         "etcd",
		"pins/csi-spec/go.mod:github.com/container-storage-interface/spec":                   "CSI spec",
		"pins/external-provisioner/go.mod:github.com/kubernetes-csi/external-provisioner/v6": "external-provisioner",
	} {
		path, module, _ := strings.Cut(module, ":")
		pin, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		version := regexp.MustCompile(regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(pin)
		if version == nil {
			t.Fatalf("%s does not pin %s", path, module)
		}
		if want := name + " " + string(version[1]); !strings.Contains(string(page), want) {
			t.Errorf("the page does not have %q, which %s pins", want, path)
		}
	}
}

// TestComplaints checks that docs/explanation/compared.md has the reports for which specs were written, and that these and
// the other tests that it names fail without the series.
func TestComplaints(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	page := read("../docs/explanation/compared.md")
	reports := regexp.MustCompile(`(?m)^\t// (https://github\.com/\S+/issues/\d+)$`).FindAllStringSubmatch(read("../test-e2e/storagecapacity/complaints.go"), -1)
	for _, m := range reports {
		if !strings.Contains(page, "("+m[1]+")") {
			t.Errorf("complaints.go has a spec for %s, which is not in the page", m[1])
		}
	}
	known, specs := map[string]bool{}, 0
	for _, folder := range []string{"../test-e2e", "../test-integration"} {
		list, err := failswithout.ReadList(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Suites {
			for _, g := range s.Groups {
				for _, test := range g.Tests {
					known[test] = g.GateOff == failswithout.Fails && g.Stock == failswithout.Fails
					if strings.HasPrefix(test, "CSIStorageCapacity complaints ") && known[test] {
						specs++
					}
				}
			}
		}
	}
	if specs != len(reports) || specs == 0 {
		t.Errorf("complaints.go has %d reports, and %d specs of it fail without the series: want one for each", len(reports), specs)
	}
	for _, m := range regexp.MustCompile("`((?:CSIStorageCapacity [a-z]|Test)[^`]*)`").FindAllStringSubmatch(page, -1) {
		if !known[m[1]] {
			t.Errorf("the page names %q, which fails without the series in no fails-without.yaml: correct one of them", m[1])
		}
	}
}
