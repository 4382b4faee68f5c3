package overrides

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// newNames are what the example uses and what stock modules do not have.
var newNames = []string{"AvailableCapacities", "VolumeRebuilding", "WithAvailableCapacities", "WithVolumeRebuilding", "GetAvailableCapacities"}

// newOutput is what the example prints for each of its types and apply
// configurations.
var newOutput = []string{`"availableCapacities":["100Gi","20Gi"]`, `"volumeRebuilding":true`}

// Prove shows with the module in the folder example that another module builds
// against the overrides, and that it needs them: without, the compiler has to
// complain about each new name.
func (r Result) Prove(ctx context.Context, example string, s *run.Step) error {
	tmp, err := os.MkdirTemp("", "overrides")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	proxy, err := r.goCommand(tmp, s, "env", "GOPROXY").Output(ctx)
	if err != nil {
		return err
	}
	goproxy := "GOPROXY=" + r.GOPROXY(strings.TrimSpace(string(proxy)))
	program := filepath.Join(tmp, "program")

	s.Sayf("without overrides, it must not compile")
	stock, err := copyModule(example, filepath.Join(tmp, "stock"), "", "")
	if err != nil {
		return err
	}
	var failed *run.Error
	switch err := r.goCommand(stock, s, "build", "-o", program, ".").Run(ctx); {
	case err == nil:
		return errors.New("the example compiles against the stock modules: it proves nothing")
	case !errors.As(err, &failed):
		return err
	default:
		for _, name := range newNames {
			if !strings.Contains(failed.Tail, name) {
				return fmt.Errorf("without overrides, the compiler does not complain about %s: %w", name, err)
			}
		}
	}

	s.Sayf("with the lines of %s and %s", replaceFile, sumFile)
	overridden, err := copyModule(example, filepath.Join(tmp, "overridden"), r.Replace(), r.GoSum())
	if err != nil {
		return err
	}
	build := r.goCommand(overridden, s, "build", "-o", program, ".")
	build.Env = append(build.Env, goproxy)
	if err := build.Run(ctx); err != nil {
		return fmt.Errorf("the example does not build against the overrides: %w", err)
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

	// The same sources at another place: that they resolve is enough, a second
	// compilation would show nothing new.
	s.Sayf("with the lines of %s", replaceLocalFile)
	local, err := copyModule(example, filepath.Join(tmp, "local"), r.ReplaceLocal(), "")
	if err != nil {
		return err
	}
	return r.goCommand(local, s, "list", "-deps", ".").Run(ctx)
}

// goCommand is a go command that sees neither our go.work nor the tree's.
func (r Result) goCommand(dir string, s *run.Step, args ...string) run.Cmd {
	return run.Cmd{Dir: dir, Env: append(toolchain.Env(), "GOWORK=off"), Log: s.Log, Name: "go", Args: args}
}

// copyModule copies the files of a module to dst and adds lines to its go.mod
// and go.sum. It returns dst.
func copyModule(src, dst, goMod, goSum string) (string, error) {
	if err := os.CopyFS(dst, os.DirFS(src)); err != nil {
		return "", err
	}
	for name, lines := range map[string]string{goModName: goMod, "go.sum": goSum} {
		path := filepath.Join(dst, name)
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(path, append(b, lines...), 0o644); err != nil {
			return "", err
		}
	}
	return dst, nil
}
