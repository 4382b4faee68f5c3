package pool

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParse(t *testing.T) {
	p, err := Parse("fast=/disks/fast:100Gi")
	if err != nil || p.Name != "fast" || p.Path != "/disks/fast" || p.Size.Value() != 100*gi {
		t.Errorf("got %v, %v", p, err)
	}
	for _, s := range []string{"", "fast", "fast=/disks", "fast=/disks:much"} {
		if p, err := Parse(s); err == nil {
			t.Errorf("%q: got %v, expected an error", s, p)
		}
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pools.yaml")
	two := "pools:\n- {name: fast, path: /disks/fast, size: 1Gi}\n- {name: slow, path: slow, size: 2Gi}\n"
	for content, want := range map[string]int{
		two: 2,
		two + "nodes:\n  node1:\n  - {name: fast, path: fast, size: 1Gi}\n": 1,
		two + "nodes:\n  node2:\n  - {name: fast, path: fast, size: 1Gi}\n": 2,
		"pools:\n- {name: fast, path: /disks/fast, sise: 1Gi}\n":            -1,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		pools, err := Load(file, "node1")
		if (err == nil) != (want >= 0) || err == nil && len(pools) != want {
			t.Errorf("%q: got %v, %v", content, pools, err)
		}
	}
}

func TestValidate(t *testing.T) {
	root := t.TempDir()
	for name, flags := range map[string][]string{
		"none":        {},
		"no name":     {"=" + root + "/a:1Gi"},
		"comma":       {"a,b=" + root + "/a:1Gi"},
		"no path":     {"a=:1Gi"},
		"outside":     {"a=../a:1Gi"},
		"empty":       {"a=" + root + "/a:0"},
		"same name":   {"a=" + root + "/a:1Gi", "a=" + root + "/b:1Gi"},
		"same folder": {"a=" + root + "/n/pools/a:1Gi", "b=a/:1Gi"},
	} {
		var pools []Pool
		for _, f := range flags {
			p, err := Parse(f)
			if err != nil {
				t.Fatal(err)
			}
			pools = append(pools, p)
		}
		if _, err := Create(root, "n", pools); err == nil {
			t.Errorf("%s: expected an error", name)
		}
	}
}
