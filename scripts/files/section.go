package files

import (
	"fmt"
	"os"
	"strings"

	"capacityv2.internal/scripts/progress"
)

const end = "<!-- end -->\n"

// ReplaceSection puts content into a text between the line that says that by wrote it and the
// line that ends it.
func ReplaceSection(text, by, content string) (string, error) {
	begin := "<!-- begin: written by " + by + " -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", progress.Refuse("no place for what "+by+" writes", "the lines "+strings.TrimSpace(begin)+" and "+strings.TrimSpace(end), "git checkout of the document")
	}
	return before + begin + content + end + after, nil
}

// UpdateSection is [ReplaceSection] in a file.
func UpdateSection(path, by, content string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := ReplaceSection(string(text), by, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = Update(path, []byte(updated))
	return err
}

// CheckSection refuses a file in which [UpdateSection] would change something.
func CheckSection(path, by, content string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	updated, err := ReplaceSection(string(text), by, content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if updated != string(text) {
		return progress.Refuse("what "+by+" has written in "+path+" is out of date", "what it would write now", by)
	}
	return nil
}
