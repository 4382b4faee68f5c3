// Package check has the verbs that test the series, and what this repository says of it.
package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/ground/workspace"
)

// Verbs returns those of this wing.
func Verbs() []*cobra.Command {
	return []*cobra.Command{lintVerb(), testVerb(), verifyVerb(), e2eVerb(), benchVerb()}
}

// longFlag adds the flag for what takes too long for every change.
func longFlag(c *cobra.Command, long *bool, usage string) {
	c.Flags().BoolVar(long, "long", false, usage)
}

// everything is the pattern of a verb that is given none.
var everything = regexp.MustCompile("")

// keepResult prints a table, and leaves it in a file for CI.
func keepResult(ws workspace.Workspace, name, table string) error {
	path := filepath.Join(ws.Work, "results", name)
	fmt.Fprintf(ws.Printer(), "%s\n%s", path, table)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(table), 0o644))
}
