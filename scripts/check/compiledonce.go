// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// shared are packages of the tree, and one that these and our tests import.
var shared = []string{"k8s.io/client-go/kubernetes", "k8s.io/kubernetes/pkg/scheduler", "google.golang.org/grpc"}

// compiledOnce sees that our tests take what is compiled for the tree. With a module of another version, or one that
// go.work replaces, all that imports it is compiled a second time, which takes longer than the tests.
func compiledOnce(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	if err := refuseReplace(filepath.Join(ws.Root, workspace.GoWork)); err != nil {
		return err
	}
	tree, err := toolchain.BuildIDs(ctx, ws.Tree(), s.Log, shared...)
	if err != nil {
		return err
	}
	ours, err := toolchain.BuildIDs(ctx, ws.Integration(), s.Log, shared...)
	if err != nil {
		return err
	}
	if err := compareBuildIDs(tree, ours); err != nil {
		return err
	}
	s.Sayf("%d packages, the same in both workspaces", len(ours))
	return nil
}

// refuseReplace refuses modules that a go.work replaces: the build cache's key holds the version that is replaced.
func refuseReplace(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(path, content, nil)
	if err != nil || len(work.Replace) == 0 {
		return err
	}
	return run.Refuse(fmt.Sprintf("%s replaces %s", path, work.Replace[0].Old.Path),
		"no replace, with which all that imports the module can be compiled a second time for our tests", remedy)
}

// remedy is what helps where versions differ.
const remedy = "require the module's version that the tree has, exclude later ones in test-e2e/go.mod, and replace nothing in go.work"

// compareBuildIDs names the first package that differs: the others import it.
func compareBuildIDs(tree, ours []toolchain.BuildID) error {
	inTree := map[string]string{}
	for _, id := range tree {
		inTree[id.Package] = id.ID
	}
	var first string
	differ := 0
	for _, id := range ours {
		if inTree[id.Package] != id.ID {
			if differ++; first == "" {
				first = id.Package
			}
		}
	}
	if differ == 0 {
		return nil
	}
	return run.Refuse(fmt.Sprintf("%d of %d packages are compiled a second time for our tests, the first of them %s", differ, len(ours), first),
		"equal build IDs in _work/kubernetes and here", remedy)
}
