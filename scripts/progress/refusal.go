package progress

import (
	"errors"
	"strings"
)

// Refusal is an error about the caller's input or machine: what was found, what
// was expected, and what to run next. It is printed as it is, without a log.
type Refusal struct {
	Found    string
	Expected string
	// Run is the command, or the change, that helps. Empty where nothing does.
	Run string
}

// Refuse returns a [Refusal].
func Refuse(found, expected, run string) error {
	return &Refusal{Found: found, Expected: expected, Run: run}
}

func (e *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(e.Found)
	if e.Expected != "" {
		b.WriteString("\n  expected: " + e.Expected)
	}
	if e.Run != "" {
		b.WriteString("\n  run: " + e.Run)
	}
	return b.String()
}

// IsRefusal reports whether a [Refusal] is in err's chain.
func IsRefusal(err error) bool {
	var r *Refusal
	return errors.As(err, &r)
}
