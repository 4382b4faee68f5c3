package cluster

import (
	"context"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/workspace"
)

// specTools are what the end-to-end specs need beside a cluster: the program that runs
// them side by side, and a sidecar that upstream's mock driver asks for.
var specTools = []tool{
	{pin: "ginkgo", programs: map[string]string{"ginkgo": "github.com/onsi/ginkgo/v2/ginkgo"}},
	{pin: "external-attacher", programs: map[string]string{"csi-attacher": "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"}, tags: toolchain.Tags},
}

// SpecTools builds them into the workspace's folder for tools, unless they were built
// from the same pins.
func SpecTools(ctx context.Context, ws workspace.Workspace, s *progress.Step) error {
	for _, t := range specTools {
		if err := t.build(ctx, ws, s.Log, s.Sayf); err != nil {
			return err
		}
	}
	return nil
}
