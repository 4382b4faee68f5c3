// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var writeRule = flag.Bool("write", false, "write docs/monitoring/prometheusrule.yaml")

// ruleHead is what the Prometheus Operator wants around the groups of rules.yaml.
const ruleHead = `# The rules of rules.yaml, for the Prometheus Operator. Written by scripts/monitoring_test.go.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: storage-capacity
  namespace: monitoring
spec:
`

// TestPrometheusRule checks that prometheusrule.yaml has the groups of rules.yaml.
func TestPrometheusRule(t *testing.T) {
	const path = "../docs/monitoring/prometheusrule.yaml"
	rules, err := os.ReadFile("../docs/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, groups, ok := strings.Cut(string(rules), "\ngroups:\n")
	if !ok {
		t.Fatal("rules.yaml has no groups")
	}
	want := ruleHead + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString("groups:\n"+groups, "  $1")
	if *writeRule {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what rules.yaml has (error %v). Run: GOWORK=off go -C scripts test . -run TestPrometheusRule -write", path, err)
	}
}
