package overrides

import (
	"context"
	"os"
	"testing"

	"capacityv2.internal/scripts/progress"
)

func TestTry(t *testing.T) {
	tree := os.Getenv("TRY_TREE")
	if tree == "" {
		t.Skip()
	}
	err := progress.New(os.Stdout, "try", t.TempDir(), 2).Step(context.Background(), "x", func(ctx context.Context, s *progress.Step) error {
		s.Log = os.Stdout
		r, err := Write(ctx, Options{Tree: tree, Modules: []string{"k8s.io/api", "k8s.io/client-go"}, Version: "v0.37.1", Revision: 1, Out: "/tmp/w/itest/ov"}, s)
		if err != nil || os.Getenv("TRY_PROVE") == "" {
			return err
		}
		return r.Prove(ctx, "../../staging-overrides/example", s)
	})
	if err != nil {
		t.Fatal(err)
	}
}
