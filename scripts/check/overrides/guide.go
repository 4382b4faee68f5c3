// SPDX-License-Identifier: Apache-2.0

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

// commandBlock is a fenced block of commands in a Markdown page. Those of bash need a cluster, and are left out.
var commandBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// FollowGuide does literally what the tutorial for authors of drivers says, in an empty
// folder: it runs the blocks of commands, and then more. checkout is the one in which the overrides were
// written.
func FollowGuide(ctx context.Context, page, checkout, dir, more string, s *run.Step) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	// One shell for all of it, as a reader has.
	script := "set -o errexit\n"
	for _, block := range commandBlock.FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	err = run.Cmd{Dir: dir, Env: append(toolchain.Env(), "GOWORK=off", "CHECKOUT="+checkout), Log: s.Log, Name: "sh", Args: []string{"-c", script + more}}.Run(ctx)
	if err != nil {
		return fmt.Errorf("what %s says does not work: %w", page, err)
	}
	for _, file := range []string{"my-driver", "my-driver.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			return fmt.Errorf("what %s says makes no %s: %w", page, file, err)
		}
	}
	return nil
}
