// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"regexp"
)

// Refusal is an error about the caller's input or machine: what was found, what
// was expected, and what to run next. It is printed as it is, without a log.
type Refusal struct {
	Found    string
	Expected string
	// Run is the command, or the change, that helps. Empty where nothing does.
	Run string
}

// Refuse returns r as an error.
func Refuse(r Refusal) error { return &r }

func (e *Refusal) Error() string {
	text := e.Found
	if e.Expected != "" {
		text += "\n  expected: " + e.Expected
	}
	switch {
	case e.Run == "":
	case command.MatchString(e.Run):
		text += "\n  run: " + e.Run
	default:
		text += "\n  try: " + e.Run
	}
	return text
}

// command matches what begins with a command, and not with advice.
var command = regexp.MustCompile(`^(make|git|go|sudo|apt-get|modprobe|[A-Z_]+=\S* make) `)

// IsRefusal reports whether a [Refusal] is in err's chain.
func IsRefusal(err error) bool {
	var r *Refusal
	return errors.As(err, &r)
}
