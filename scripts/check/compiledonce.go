package check

import (
	"context"
	"fmt"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
	"capacityv2.internal/scripts/ground/workspace"
)

// shared are packages of the tree, and one that these and our tests import.
var shared = []string{"k8s.io/client-go/kubernetes", "k8s.io/kubernetes/pkg/scheduler", "google.golang.org/grpc"}

// compiledOnce sees that our tests take what is compiled for the tree. With a module of another version, or one that
// go.work replaces, all that imports it is compiled a second time, which takes longer than the tests.
func compiledOnce(ctx context.Context, ws workspace.Workspace, s *run.Step) error {
	tree, err := toolchain.BuildIDs(ctx, ws.Tree(), s.Log, shared...)
	if err != nil {
		return err
	}
	ours, err := toolchain.BuildIDs(ctx, ws.Integration(), s.Log, shared...)
	if err != nil {
		return err
	}
	s.Sayf("%d packages, the same in both workspaces", len(ours))
	return compareBuildIDs(tree, ours)
}

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
	return run.Refuse(run.Refusal{
		Found:    fmt.Sprintf("%d of %d packages are compiled a second time for our tests, the first of them %s", differ, len(ours), first),
		Expected: "equal build IDs in _work/kubernetes and here",
		Run:      "require the module's version that the tree has, exclude later ones in test-e2e/go.mod, and replace nothing in go.work",
	})
}
