// SPDX-License-Identifier: Apache-2.0

package release

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/workspace"
)

func TestVersionAsOthersReadIt(t *testing.T) {
	v := Version{Base: "v1.37.2", Revision: 3}
	if got, want := v.String(), "v1.37.2+capacityv2.3"; got != want {
		t.Fatalf("version %q, want %q", got, want)
	}
	if got, want := v.ImageTag(), "v1.37.2_capacityv2.3"; got != want {
		t.Errorf("image tag %q, want %q", got, want)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`).MatchString(v.ImageTag()) {
		t.Errorf("%q is no image tag", v.ImageTag())
	}
}

func TestReadVersion(t *testing.T) {
	const pin = "module x\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.37.2\n"
	for name, c := range map[string]struct{ pin, revision, want, err string }{
		"good":               {pin, "2\n", "v1.37.2+capacityv2.2", ""},
		"no revision file":   {pin, "", "", "whole number"},
		"revision zero":      {pin, "0", "", "whole number"},
		"revision is a word": {pin, "two", "", "whole number"},
		"no base":            {"module x\n", "1", "", "requires no k8s.io/kubernetes"},
		"base is no release": {strings.Replace(pin, "v1.37.2", "v1.37.2-0.20260101000000-abcdefabcdef", 1), "1", "", "no release"},
	} {
		t.Run(name, func(t *testing.T) {
			ws := workspace.Workspace{Root: t.TempDir()}
			p := addProject(t, ws, workspace.Kubernetes, "k8s.io/kubernetes", "v1.37.2")
			write(t, filepath.Join(p.Pin(), "go.mod"), c.pin)
			if c.revision != "" {
				write(t, ws.Revision(), c.revision)
			}
			v, err := ReadVersion(ws)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
			case err != nil || v.String() != c.want:
				t.Errorf("%s, %v; want %s", v, err, c.want)
			}
		})
	}
}

// All projects of a release have the same revision.
func TestProjectVersion(t *testing.T) {
	ws := workspace.Workspace{Root: t.TempDir()}
	addProject(t, ws, workspace.Kubernetes, "k8s.io/kubernetes", "v1.37.2")
	write(t, ws.Revision(), "3\n")
	v, err := projectVersion(ws, addProject(t, ws, workspace.ExternalProvisioner, "github.com/kubernetes-csi/external-provisioner/v6", "v6.4.0"))
	if err != nil || v.String() != "v6.4.0+capacityv2.3" {
		t.Errorf("%s, %v", v, err)
	}
}
