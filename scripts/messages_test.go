// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// inserted is what the programs put into a message, so that a page has something else there.
	inserted  = regexp.MustCompile(`…|\bnode\d\b|\b\d+(?:Gi)?\b|\bclass \S*:`)
	isCommand = regexp.MustCompile(`^(?:kube\w+|make|ctr|crictl|docker|git|go|curl|openssl) |[=<>]`)
)

// upstreams are messages of upstream's code that no patch touches.
var upstreams = []string{
	"didn't find available persistent volumes to bind", `running PreBind plugin "VolumeBinding":`, "provisioning failed for PVC",
	"Waiting for detach for volume", "unrecognized feature gate: CSIStorageCapacityV2",
	"[upgrade/addon] Skipping the addon/kube-proxy phase. The addon is disabled.",
}

// unknownMessages returns the parts of messages that prose quotes, and that the sources do not have. What has fewer than four
// words is a name or a value.
func unknownMessages(prose, sources string) (unknown []string) {
	for _, quoted := range inline.FindAllString(prose, -1) {
		quoted = strings.Trim(quoted, "`")
		if len(strings.Fields(quoted)) < 4 || isCommand.MatchString(quoted) {
			continue
		}
		for _, part := range inserted.Split(quoted, -1) {
			part = strings.TrimSpace(part)
			if len(strings.Fields(part)) > 1 && !strings.Contains(sources, part) && !slices.Contains(upstreams, part) {
				unknown = append(unknown, part)
			}
		}
	}
	return unknown
}

// TestMessages checks that the messages of programs that guides quote are in the patches, or are upstream's.
func TestMessages(t *testing.T) {
	patches, err := filepath.Glob("../patches/*/*.patch")
	if err != nil || len(patches) < 20 {
		t.Fatalf("%d patches, error %v", len(patches), err)
	}
	var sources strings.Builder
	for _, path := range patches {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(content)
	}
	for path, p := range pages(t) {
		if !strings.HasPrefix(path, "docs/how-to/") && path != "docs/faq.md" && path != "docs/reference/metrics-and-events.md" {
			continue
		}
		for _, part := range unknownMessages(p.prose, sources.String()) {
			t.Errorf("%s quotes %q, which is in no patch. Correct it, or add it to upstreams, if upstream's code says it", path, part)
		}
	}
	for prose, want := range map[string]int{
		"`kubectl get pods --all-namespaces --watch`": 0, "`has 50Gi, and no more room`": 0, "`has no more room left`": 1, "`one two three`": 0,
	} {
		if got := unknownMessages(prose, "+\treturn \"has %s, and no more room\""); len(got) != want {
			t.Errorf("%s: %q, want %d", prose, got, want)
		}
	}
}
