package pool

import "testing"

func TestParse(t *testing.T) {
	pools, err := Parse(map[string]string{"slow": "2Gi", "fast": "1Gi"})
	if err != nil || len(pools) != 2 || pools[0].Name != "fast" || pools[0].Size.Value() != gi || pools[1].Size.Value() != 2*gi {
		t.Errorf("got %v, %v", pools, err)
	}
	for name, sizes := range map[string]map[string]string{
		"none":      {},
		"no name":   {"": "1Gi"},
		"slash":     {"a/b": "1Gi"},
		"outside":   {"..": "1Gi"},
		"no number": {"a": "much"},
		"empty":     {"a": "0"},
	} {
		if pools, err := Parse(sizes); err == nil {
			t.Errorf("%s: got %v; expected an error", name, pools)
		}
	}
}
