// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

const end = "<!-- end -->\n"

// ReplaceSection puts content into a text between the line that says that by wrote it and the
// line that ends it.
func ReplaceSection(text, by, content string) (string, error) {
	begin := "<!-- begin: written by " + by + " -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", run.Refuse("no place for what "+by+" writes",
			"the lines "+strings.TrimSpace(begin)+" and "+strings.TrimSpace(end), "git checkout of the document")
	}
	return before + begin + content + end + after, nil
}

// UpdateSection is [ReplaceSection] in a file.
func UpdateSection(path, by, content string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := ReplaceSection(string(b), by, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = Update(path, []byte(updated))
	return err
}
