package overrides

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/progress"
	"capacityv2.internal/scripts/run"
	"capacityv2.internal/scripts/toolchain"
)

// codeBlock is a fenced block of a Markdown page.
var codeBlock = regexp.MustCompile("(?ms)^```(sh|go)\n(.*?)^```$")

// FollowGuide does literally what the guide for authors of drivers says, from an empty
// folder: it runs the blocks of commands, and saves the program where the page has it.
// checkout is the one in which the overrides were written.
func FollowGuide(ctx context.Context, page, checkout string, s *progress.Step) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "my-driver")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// One shell for all of it, as a reader has.
	script, programs := "set -o errexit\n", 0
	for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		if block[1] == "sh" {
			script += block[2]
			continue
		}
		programs++
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(block[2]), 0o644); err != nil {
			return err
		}
	}
	if programs != 1 {
		return fmt.Errorf("%s has %d programs, expected one", page, programs)
	}
	err = run.Cmd{Dir: dir, Env: append(toolchain.Env(), "GOWORK=off", "CHECKOUT="+checkout), Log: s.Log, Name: "sh", Args: []string{"-c", script}}.Run(ctx)
	if err != nil {
		return fmt.Errorf("what %s says does not work: %w", page, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "my-driver")); err != nil {
		return fmt.Errorf("what %s says builds no program: %w", page, err)
	}
	return nil
}
