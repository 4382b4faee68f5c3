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
		return "", run.Refuse(run.Refusal{
			Found:    "no place for what " + by + " writes",
			Expected: "the lines " + strings.TrimSpace(begin) + " and " + strings.TrimSpace(end),
			Run:      "git checkout of the document",
		})
	}
	return before + begin + content + end + after, nil
}

// UpdateSection is [ReplaceSection] in a file.
func UpdateSection(path, by, content string) error {
	_, updated, err := replaceInFile(path, by, content)
	if err == nil {
		_, err = Update(path, []byte(updated))
	}
	return err
}

// CheckSection refuses a file in which [UpdateSection] would change something.
func CheckSection(path, by, content string) error {
	text, updated, err := replaceInFile(path, by, content)
	if err == nil && updated != text {
		err = run.Refuse(run.Refusal{
			Found:    "what " + by + " has written in " + path + " is out of date",
			Expected: "what it would write now",
			Run:      by,
		})
	}
	return err
}

// replaceInFile returns the text of a file as it is, and with the section replaced.
func replaceInFile(path, by, content string) (text, updated string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	if updated, err = ReplaceSection(string(b), by, content); err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	return string(b), updated, nil
}
