// SPDX-License-Identifier: Apache-2.0

// Package check has the verbs that test the series, and what this repository says of it.
package check

import (
	"regexp"

	"github.com/spf13/cobra"
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
