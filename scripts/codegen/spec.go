package codegen

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/base"
	"capacityv2.internal/scripts/gitrepo"
	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
	"capacityv2.internal/scripts/tools"
	"capacityv2.internal/scripts/workspace"
)

// specOutputs are what the CSI spec's make targets write, in their order.
var specOutputs = []struct{ dir, target, file string }{
	{".", "csi.proto", "csi.proto"},
	{"lib/go", "csi/csi.pb.go", "lib/go/csi/csi.pb.go"},
	{"lib/go", "csi/csi_grpc.pb.go", "lib/go/csi/csi_grpc.pb.go"},
}

// SpecTasks regenerate the protobuf definitions and the Go bindings of the CSI spec at
// HEAD, with its own Makefiles, and fill res. They refuse a tree with changes that are not
// committed, unless they are in what is generated.
func SpecTasks(p workspace.Project, res *Result) []progress.Task {
	c := &checkout{dir: p.Tree() + "-codegen", tree: gitrepo.Open(p.Tree(), nil)}
	res.from, res.tree, res.written = c.dir, c.tree, map[string]bool{}
	return []progress.Task{{Name: "generators of the " + p.Title, Do: func(ctx context.Context, s *progress.Step) error {
		if err := c.refuseDirty(ctx); err != nil {
			return err
		}
		head, err := c.tree.Rev(ctx, "HEAD")
		if err != nil {
			return err
		}
		res.Head = head
		if err := base.AddWorktree(ctx, gitrepo.Open(c.tree.Dir, s.Log), c.dir, head); err != nil {
			return err
		}
		version, err := c.specProtoc(ctx, s)
		if err != nil {
			return err
		}
		env, err := toolchain.UpstreamEnv(ctx)
		if err != nil {
			return err
		}
		// A folder that the spec's .gitignore names.
		env = append(env, "GOBIN="+filepath.Join(c.dir, "lib", "go", ".protoc", "bin"))
		for _, o := range specOutputs {
			// make looks at times, and all files of a fresh work tree are new.
			if err := os.Remove(filepath.Join(c.dir, o.file)); err != nil {
				return err
			}
		}
		for _, o := range specOutputs {
			if err := (run.Cmd{Dir: filepath.Join(c.dir, o.dir), Env: env, Log: s.Log, Name: "make", Args: []string{o.target}}).Run(ctx); err != nil {
				return err
			}
			if err := nameProtoc(filepath.Join(c.dir, o.file), version); err != nil {
				return err
			}
			res.written[o.file] = true
		}
		if err := (run.Cmd{Dir: c.dir, Env: env, Log: s.Log, Name: "make", Args: []string{"check"}}).Run(ctx); err != nil {
			return fmt.Errorf("the spec's own check: %w", err)
		}
		if res.Changed, res.Diff, err = diffOf(ctx, c.repo(), s.Log); err != nil {
			return err
		}
		s.Sayf("%d generated files written anew, %d files differ", len(res.written), len(res.Changed))
		return nil
	}}}
}

// specProtoc puts the machine's protoc where the spec's Makefile installs its own, and
// returns the version of the latter, as protoc's plugins are told it.
func (c *checkout) specProtoc(ctx context.Context, s *progress.Step) (string, error) {
	if err := tools.EnsurePrograms(ctx, s, "protoc", "make"); err != nil {
		return "", err
	}
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		return "", err
	}
	// The types that the spec imports are in another package of Debian's.
	if _, err := os.Stat(filepath.Join(filepath.Dir(protoc), "..", "include", "google", "protobuf", "wrappers.proto")); err != nil {
		if err := tools.InstallPackages(ctx, s, "libprotobuf-dev"); err != nil {
			return "", err
		}
	}
	makefile, err := os.ReadFile(filepath.Join(c.dir, "lib", "go", "Makefile"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^PROTOC_VER := ([0-9.]+)$`).FindSubmatch(makefile)
	if m == nil {
		return "", fmt.Errorf("lib/go/Makefile sets no PROTOC_VER: the spec's Makefile changed")
	}
	link := filepath.Join(c.dir, "lib", "go", ".protoc", "bin", "protoc")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return "", err
	}
	return "v4." + string(m[1]), os.Symlink(protoc, link)
}

// protocLine is where the plugins write which protoc has called them.
var protocLine = regexp.MustCompile(`(?m)^(// (?:- |\t)protoc +)v[0-9.]+$`)

// nameProtoc writes the version of upstream's protoc where the machine's is: it is the
// only difference between them.
func nameProtoc(file, version string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, protocLine.ReplaceAll(b, []byte("${1}"+version)), 0o644)
}
