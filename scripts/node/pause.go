package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/run"
)

// pauseTag finds the version of the tree's pause image.
var pauseTag = regexp.MustCompile(`(?m)^TAG \?= (\S+)$`)

// PauseImage returns the name of the tree's pause image: the one that upstream's
// own tests ask for, so that they find ours under it.
func PauseImage(tree string) (string, error) {
	file := filepath.Join(tree, "build", "pause", "Makefile")
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m := pauseTag.FindSubmatch(b)
	if m == nil {
		return "", fmt.Errorf("%s: no TAG", file)
	}
	return "registry.k8s.io/pause:" + string(m[1]), nil
}

// WritePauseImage compiles the tree's pause and packs it into dir. It returns the
// tarball.
func WritePauseImage(ctx context.Context, tree, dir, reference string, log io.Writer) (string, error) {
	program := filepath.Join(dir, "pause")
	cc := run.Cmd{Name: "gcc", Log: log, Args: []string{"-Os", "-Wall", "-static", "-s", "-o", program,
		filepath.Join(tree, "build", "pause", "linux", "pause.c")}}
	if err := cc.Run(ctx); err != nil {
		return "", err
	}
	out := filepath.Join(dir, "pause.tar")
	// The user of upstream's image, so that it runs under "runAsNonRoot" too.
	return out, Image{Reference: reference, Entrypoint: []string{"/pause"}, Files: map[string]string{"pause": program}, user: "65535:65535"}.write(ctx, out)
}
