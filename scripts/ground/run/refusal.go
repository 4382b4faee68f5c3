// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"regexp"
)

// refusal is the text of an error of [Refuse].
type refusal string

func (r refusal) Error() string { return string(r) }

// Refuse returns an error about the caller's input or machine: what was found, what was expected, and what to do, which is
// a command or a change that helps. It is printed as it is, without a log. What is empty is left out.
func Refuse(found, expected, do string) error {
	if expected != "" {
		found += "\n  expected: " + expected
	}
	switch {
	case do == "":
	case command.MatchString(do):
		found += "\n  run: " + do
	default:
		found += "\n  try: " + do
	}
	return refusal(found)
}

// command matches what begins with a command, and not with advice.
var command = regexp.MustCompile(`^(make|git|go|sudo|apt-get|modprobe|[A-Z_]+=\S* make) `)

// IsRefusal reports whether an error of [Refuse] is in err's chain.
func IsRefusal(err error) bool {
	var r refusal
	return errors.As(err, &r)
}
