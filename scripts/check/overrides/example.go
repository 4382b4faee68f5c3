// SPDX-License-Identifier: Apache-2.0

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

// module is a copy of an example, in a folder of its own.
type module struct{ tmp, dir string }

func copyExample(example string) (module, error) {
	tmp, err := os.MkdirTemp("", "overrides")
	if err != nil {
		return module{}, err
	}
	m := module{tmp, filepath.Join(tmp, "example")}
	if err := os.CopyFS(m.dir, os.DirFS(example)); err != nil {
		return module{}, errors.Join(err, m.remove())
	}
	return m, nil
}

func (m module) program() string { return filepath.Join(m.tmp, "program") }
func (m module) remove() error   { return os.RemoveAll(m.tmp) }

// build builds the module. It sees neither our go.work nor the tree's.
func (m module) build(ctx context.Context, s *run.Step) error {
	return run.Cmd{Dir: m.dir, Env: append(toolchain.Env(), "GOWORK=off"), Log: s.Log, Name: "go",
		Args: []string{"build", "-mod=mod", "-o", m.program(), "."}}.Run(ctx)
}

// ExampleFails builds the module in the folder example with stock modules. The compiler has to complain about each new name.
func ExampleFails(ctx context.Context, example string, s *run.Step) error {
	m, err := copyExample(example)
	if err != nil {
		return err
	}
	defer m.remove()
	var failed *run.Error
	switch err := m.build(ctx, s); {
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
	return nil
}

// BuildExample builds the module in the folder example with the lines in the file replace, and runs it.
func BuildExample(ctx context.Context, example, replace string, s *run.Step) error {
	m, err := copyExample(example)
	if err != nil {
		return err
	}
	defer m.remove()
	s.Sayf("with the lines of %s", replace)
	goMod := filepath.Join(m.dir, "go.mod")
	before, errMod := os.ReadFile(goMod)
	lines, errLines := os.ReadFile(replace)
	if err := errors.Join(errMod, errLines); err != nil {
		return err
	}
	if err := os.WriteFile(goMod, append(before, lines...), 0o644); err != nil {
		return err
	}
	if err := m.build(ctx, s); err != nil {
		return fmt.Errorf("the example does not build against the trees: %w", err)
	}
	out, err := run.Cmd{Dir: m.tmp, Log: s.Log, Name: m.program()}.Output(ctx)
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
