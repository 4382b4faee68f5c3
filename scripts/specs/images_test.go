package specs

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestImages(t *testing.T) {
	tree := t.TempDir()
	for file, content := range map[string]string{
		imageList: "\tinitRegistry = RegistryList{\n\t\tE2e:     \"registry.example/e2e\",\n\t\tPrivate: \"private.example/no\",\n\t}\n" +
			"\tconfigs[AgnhostPrev] = Config{list.E2e, \"agnhost\", \"1\"}\n\tconfigs[Agnhost] = Config{list.E2e, \"agnhost\", \"2\"}\n" +
			"\tconfigs[AgnhostPrivate] = Config{list.Private, \"agnhost\", \"3\"}\n\tconfigs[BusyBox] = Config{list.E2e, \"busybox\", \"4\"}\n" +
			"\tconfigs[DnsTest] = Config{list.E2e, \"dns-test\", \"5\"}\n",
		mockObjects + "/a.yaml":      "      - image: x\n          image: registry.example/e2e/busybox:3\n          image: registry.example/csi/csi-attacher:v1\n",
		mockObjects + "/sub/b.yaml":  "          image: registry.example/csi/csi-attacher:v1\n",
		mockObjects + "/sub/b.other": "          image: registry.example/csi/other:v1\n",
	} {
		path := filepath.Join(tree, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Images(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"agnhost":      {"registry.example/e2e/agnhost:2"},
		"dns-test":     {"registry.example/e2e/dns-test:5"},
		"busybox":      {"registry.example/e2e/busybox:4", "registry.example/e2e/busybox:3"},
		"csi-attacher": {"registry.example/csi/csi-attacher:v1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
