package gates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"capacityv2.internal/scripts/progress"
)

const good = `gates:
- name: CSIStorageCapacityV2
  stage: Alpha
  since: "1.37"
  default: false
  ours: true
  enabled: true
  components: [kube-scheduler]
  why: a test
- name: Other
  stage: Beta
  since: "1.36"
  default: true
  ours: false
  enabled: false
  components: [kubelet]
  why: a test
`

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     string // "": it is accepted
	}{
		"good":             {"", "", ""},
		"unknown key":      {"why: a test", "because: a test", "unknown field"},
		"twice":            {"name: Other", "name: CSIStorageCapacityV2", "listed twice"},
		"unknown stage":    {"stage: Beta", "stage: beta", "stage"},
		"unquoted version": {`since: "1.36"`, `since: v1.36`, "since"},
		"odd name":         {"name: Other", "name: other gate", "not the name of a gate"},
		"no components":    {"components: [kubelet]", "components: []", "no components"},
		"no gates":         {good, "gates: []\n", "lists no gate"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Read(file(t, "feature-gates.yaml", strings.Replace(good, tc.from, tc.to, 1)))
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got, want := l.Enabled(), "CSIStorageCapacityV2=true"; got != want {
					t.Errorf("Enabled() = %q, want %q", got, want)
				}
				return
			}
			if !progress.IsRefusal(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal that holds %q", err, tc.want)
			}
		})
	}
}

const diff = `diff --git a/pkg/features/kube_features.go b/pkg/features/kube_features.go
--- a/pkg/features/kube_features.go
+++ b/pkg/features/kube_features.go
@@ -1,2 +1,3 @@
 package features
+	GATE featuregate.Feature = "GATE"
 	Old featuregate.Feature = "Old"
`

func TestCheckPatches(t *testing.T) {
	l, err := Read(file(t, "feature-gates.yaml", good))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ gate, want string }{
		"ours":                     {"CSIStorageCapacityV2", ""},
		"missing from the list":    {"Surprise", "feature-gates.yaml lacks Surprise"},
		"missing from the patches": {"Other", "lists CSIStorageCapacityV2 as ours"},
	} {
		t.Run(name, func(t *testing.T) {
			files, _, err := gitdiff.Parse(strings.NewReader(strings.ReplaceAll(diff, "GATE", tc.gate)))
			if err != nil {
				t.Fatal(err)
			}
			err = l.CheckPatches(files)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

const features = `package features

var defaultVersionedKubernetesFeatureGates = map[featuregate.Feature]featuregate.VersionedSpecs{
	Other: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.36"), Default: true, PreRelease: featuregate.Beta},
	},
	genericfeatures.Foreign: {
		{Version: version.MustParse("1.30"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
}
`

const ours = `	CSIStorageCapacityV2: {
		{Version: version.MustParse("1.37"), Default: false, PreRelease: featuregate.Alpha},
	},
}
`

func TestCheckTree(t *testing.T) {
	l, err := Read(file(t, "feature-gates.yaml", good))
	if err != nil {
		t.Fatal(err)
	}
	tree := func(content string) string {
		return strings.TrimSuffix(file(t, featuresFile, content), filepath.FromSlash("/"+featuresFile))
	}
	stock := tree(features)
	patched := strings.TrimSuffix(features, "}\n") + ours
	for name, tc := range map[string]struct{ content, want string }{
		"as listed":       {patched, ""},
		"another default": {strings.Replace(patched, `"1.37"), Default: false`, `"1.37"), Default: true`, 1), "CSIStorageCapacityV2: Alpha since 1.37, default false"},
		"another stage":   {strings.Replace(patched, "PreRelease: featuregate.Beta", "PreRelease: featuregate.GA", 1), "Other"},
		"a gate too many": {strings.Replace(patched, "\tCSIStorageCapacityV2: {", "\tExtra: {\n\t\t{Version: version.MustParse(\"1.37\")},\n\t},\n\tCSIStorageCapacityV2: {", 1), "lacks Extra"},
		"a gate too few":  {features, "lists CSIStorageCapacityV2 as ours"},
	} {
		t.Run(name, func(t *testing.T) {
			err := l.CheckTree(tree(tc.content), stock)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
