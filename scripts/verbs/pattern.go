package verbs

import (
	"regexp"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/progress"
)

// everything is the pattern of a verb that is given none: cmp.Or(pattern, everything).
var everything = regexp.MustCompile("")

// patternFlag adds a flag for a regular expression. Without it, or if it is empty, *p
// stays nil.
func patternFlag(c *cobra.Command, p **regexp.Regexp, name, usage string) {
	c.Flags().Func(name, usage+" this `regexp`", func(text string) (err error) {
		if text == "" {
			return nil
		}
		if *p, err = regexp.Compile(text); err != nil {
			return progress.Refuse(err.Error(), "a regular expression", "go doc regexp/syntax") // pflag puts the flag before it
		}
		return nil
	})
}
