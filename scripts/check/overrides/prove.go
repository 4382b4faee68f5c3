// Package overrides shows that another Go module builds against the trees as their documentation says.
package overrides

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// newNames are what the example uses and what stock modules do not have.
var newNames = []string{"AvailableCapacities", "VolumeRebuilding", "WithAvailableCapacities", "WithVolumeRebuilding", "GetAvailableCapacities"}

// newOutput is what the example prints for each of its types and apply configurations.
var newOutput = []string{`"availableCapacities":["100Gi","20Gi"]`, `"volumeRebuilding":true`}

// Prove builds the module in the folder example with the lines in the file replace. Without them, the compiler has to
// complain about each new name.
func Prove(ctx context.Context, example, replace string, s *run.Step) error {
	tmp, err := os.MkdirTemp("", "overrides")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	module := filepath.Join(tmp, "example")
	if err := os.CopyFS(module, os.DirFS(example)); err != nil {
		return err
	}
	program := filepath.Join(tmp, "program")
	// It sees neither our go.work nor the tree's.
	build := run.Cmd{Dir: module, Env: append(toolchain.Env(), "GOWORK=off"), Log: s.Log, Name: "go", Args: []string{"build", "-mod=mod", "-o", program, "."}}

	s.Sayf("without overrides, it must not compile")
	var failed *run.Error
	switch err := build.Run(ctx); {
	case err == nil:
		return errors.New("the example compiles against the stock modules: it proves nothing")
	case !errors.As(err, &failed):
		return err
	}
	for _, name := range newNames {
		if !strings.Contains(failed.Tail, name) {
			return fmt.Errorf("without overrides, the compiler does not complain about %s: %w", name, failed)
		}
	}

	s.Sayf("with the lines of %s", replace)
	goMod := filepath.Join(module, "go.mod")
	before, errMod := os.ReadFile(goMod)
	lines, errLines := os.ReadFile(replace)
	if err := errors.Join(errMod, errLines); err != nil {
		return err
	}
	if err := os.WriteFile(goMod, append(before, lines...), 0o644); err != nil {
		return err
	}
	if err := build.Run(ctx); err != nil {
		return fmt.Errorf("the example does not build against the trees: %w", err)
	}
	out, err := run.Cmd{Dir: tmp, Log: s.Log, Name: program}.Output(ctx)
	if err != nil {
		return err
	}
	for _, text := range newOutput {
		if n := bytes.Count(out, []byte(text)); n != 2 {
			return fmt.Errorf("the example prints %s %d times, want 2:\n%s", text, n, out)
		}
	}
	return nil
}
