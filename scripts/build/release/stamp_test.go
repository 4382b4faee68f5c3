// SPDX-License-Identifier: Apache-2.0

package release

import (
	"path/filepath"
	"strings"
	"testing"

	"capacityv2.internal/scripts/ground/gitrepo"
	"capacityv2.internal/scripts/ground/testtree"
	"capacityv2.internal/scripts/ground/workspace"
)

func TestTreeStamp(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "1")
	commitAll(t, dir)
	v := Version{Base: "v1.37.2", Revision: 1}
	s, err := TreeStamp(t.Context(), workspace.Kubernetes, dir, v)
	if err != nil {
		t.Fatal(err)
	}
	head, err := gitrepo.Open(dir, nil).Rev(t.Context(), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	flags := s.Ldflags()
	for _, want := range []string{
		"-s -w ",
		"-X k8s.io/component-base/version.gitVersion=v1.37.2+capacityv2.1",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.37.2+capacityv2.1",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/component-base/version.gitTreeState=clean",
		"-X k8s.io/component-base/version.gitCommit=" + head,
		"-X k8s.io/component-base/version.buildDate=" + testtree.Date,
	} {
		if !strings.Contains(flags+" ", want+" ") && !strings.HasPrefix(flags, want) {
			t.Errorf("no %q in %q", want, flags)
		}
	}

	write(t, filepath.Join(dir, "f"), "2")
	if s, err = TreeStamp(t.Context(), workspace.Kubernetes, dir, v); err != nil {
		t.Fatal(err)
	}
	if len(s.Dirty) != 1 || s.GitVersion() != "v1.37.2+capacityv2.1-dirty" {
		t.Errorf("%+v, want a dirty one", s)
	}
}
