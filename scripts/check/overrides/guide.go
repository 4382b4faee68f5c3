package overrides

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/toolchain"
)

// codeBlock is a fenced block of a Markdown page.
var codeBlock = regexp.MustCompile("(?ms)^```(sh|go|yaml)\n(.*?)^```$")

// savedAs are the files as which a reader of the guide saves its blocks.
var savedAs = map[string]string{"go": "main.go", "yaml": "my-driver.yaml"}

// withRace builds what the guide builds once more, for the test that runs it.
const withRace = "CGO_ENABLED=1 go build -race -o my-driver-race .\n"

// FollowGuide does literally what the guide for authors of drivers says, in an empty
// folder: it runs the blocks of commands, and saves the program and the manifest where the
// page has them. checkout is the one in which the overrides were written.
func FollowGuide(ctx context.Context, page, checkout, dir string, s *run.Step) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	// One shell for all of it, as a reader has.
	script, saved := "set -o errexit\n", map[string]int{}
	for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		if block[1] == "sh" {
			script += block[2]
			continue
		}
		saved[block[1]]++
		if err := os.WriteFile(filepath.Join(dir, savedAs[block[1]]), []byte(block[2]), 0o644); err != nil {
			return err
		}
	}
	for kind, name := range savedAs {
		if saved[kind] != 1 {
			return fmt.Errorf("%s has %d blocks for %s, expected one", page, saved[kind], name)
		}
	}
	err = run.Cmd{Dir: dir, Env: append(toolchain.Env(), "GOWORK=off", "CHECKOUT="+checkout), Log: s.Log, Name: "sh", Args: []string{"-c", script + withRace}}.Run(ctx)
	if err != nil {
		return fmt.Errorf("what %s says does not work: %w", page, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "my-driver")); err != nil {
		return fmt.Errorf("what %s says builds no program: %w", page, err)
	}
	return nil
}
