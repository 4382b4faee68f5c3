// Package section replaces a part of a document that a verb writes.
package section

import (
	"fmt"
	"os"
	"strings"

	"capacityv2.internal/scripts/files"
	"capacityv2.internal/scripts/progress"
)

const end = "<!-- end -->\n"

// Replace puts content into a text between the line that says that by wrote it and the
// line that ends it.
func Replace(text, by, content string) (string, error) {
	begin := "<!-- begin: written by " + by + " -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", progress.Refuse("no place for what "+by+" writes", "the lines "+strings.TrimSpace(begin)+" and "+strings.TrimSpace(end), "git checkout of the document")
	}
	return before + begin + content + end + after, nil
}

// Write is [Replace] in a file.
func Write(path, by, content string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := Replace(string(text), by, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = files.Update(path, []byte(updated))
	return err
}
