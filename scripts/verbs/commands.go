package verbs

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"capacityv2.internal/scripts/run"
)

// Commands returns all verbs. Each is in a file of its name.
func Commands(a *App) []*cobra.Command {
	var all []*cobra.Command
	for _, command := range []func(*App) *cobra.Command{
		upCommand, downCommand, testCommand, nightlyCommand, e2eCommand,
		demoCommand, benchCommand, applyCommand, exportCommand, rebaseCommand, lintCommand,
		verifyCommand, codegenCommand, releaseCommand, cleanCommand,
	} {
		all = append(all, command(a))
	}
	return all
}

// verb is a command without arguments. help is a paragraph, example is "" where there is
// nothing to choose.
func verb(name, short, help, example string, do func(context.Context) error) *cobra.Command {
	example = cmp.Or(example, "  capacityv2 "+name)
	return &cobra.Command{
		Use: name, Short: short, Long: short + ".\n\n" + strings.TrimSpace(help), Example: example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return do(c.Context()) },
	}
}

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
			return run.Refuse(err.Error(), "a regular expression", "go doc regexp/syntax") // pflag puts the flag before it
		}
		return nil
	})
}
