// SPDX-License-Identifier: Apache-2.0

// Package cli makes verbs of functions, for people and for make.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"capacityv2.internal/scripts/ground/run"
	"capacityv2.internal/scripts/ground/workspace"
)

// Verb is a command without arguments. help is a paragraph, example is "" where there is
// nothing to choose.
func Verb(name, short, help, example string, do func(context.Context, workspace.Workspace) error) *cobra.Command {
	example = cmp.Or(example, "  capacityv2 "+name)
	return &cobra.Command{
		Use: name, Short: short, Long: short + ".\n\n" + strings.TrimSpace(help), Example: example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ws, err := workspace.Find(".")
			if err != nil {
				return err
			}
			ws.Checkout = c.Flags().Lookup(checkoutFlag).Value.String()
			return do(c.Context(), ws)
		},
	}
}

const checkoutFlag = "kubernetes-src"

// Root is the command that has the verbs.
func Root(name, short string) *cobra.Command {
	var checkout path
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use: name, Short: short, SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return fromMake(c) },
	}
	root.PersistentFlags().Var(&checkout, checkoutFlag, "git checkout of Kubernetes at the pinned tag, from which the tree is made instead of from Go modules")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Use: "help", Short: "List the verbs, with their variables", Hidden: true, Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), list(root)) }})
	return root
}

// Add adds verbs of a group. Those of a group have one heading.
func Add(root *cobra.Command, group string, verbs ...*cobra.Command) {
	if !root.ContainsGroup(group) {
		root.AddGroup(&cobra.Group{ID: group, Title: group + ":"})
	}
	for _, verb := range verbs {
		verb.GroupID = group
		root.AddCommand(verb)
	}
}

// list is the verbs by groups, each with the variables that make takes for its flags.
func list(root *cobra.Command) string {
	var b strings.Builder
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "%s\n", group.Title)
		for _, verb := range root.Commands() {
			if verb.GroupID != group.ID {
				continue
			}
			fmt.Fprintf(&b, "  make %-8s %s\n", verb.Name(), verb.Short)
			var variables []string
			verb.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				if value, _ := pflag.UnquoteUsage(f); f.Name != "help" {
					variables = append(variables, variable(f.Name)+"="+cmp.Or(value, "1"))
				}
			})
			if len(variables) > 0 {
				fmt.Fprintf(&b, "                %s\n", strings.Join(variables, " "))
			}
		}
	}
	return b.String() + "All but " + strings.Join(withoutBase[1:], ", ") + ": " + variable(checkoutFlag) + "=FOLDER takes the base from a git checkout at the tag.\n" +
		"GOWORK=off go -C scripts run . VERB --help says more; that of up names the environment variables of a cluster.\n"
}

// PatternFlag adds a flag for a regular expression. Without it, or if it is empty, *p stays nil.
func PatternFlag(c *cobra.Command, p **regexp.Regexp, name, usage string) {
	c.Flags().Func(name, usage+" this `REGEXP`", func(text string) (err error) {
		if text != "" {
			*p, err = regexp.Compile(text)
		}
		return err
	})
}

// path is the value of a flag for a file or a folder.
type path string

func (p *path) String() string         { return string(*p) }
func (p *path) Set(value string) error { *p = path(value); return nil }
func (p *path) Type() string           { return "FILE" }

// PathFlag adds a flag for a file or a folder.
func PathFlag(c *cobra.Command, p *string, name, usage string) {
	c.Flags().Var((*path)(p), name, usage)
}

// variable is the variable of make for a flag: FUZZ_TIME for --fuzz-time.
func variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// assignment is a variable in MAKEFLAGS, where blanks and backslashes in a value have a backslash, and $ is doubled. The
// variable itself has what make has made of each $, such as those of regular expressions.
var assignment = regexp.MustCompile(`(?:^| )([A-Z_]+)=((?:\\.|[^\\ ])*)`)

var escaped = regexp.MustCompile(`\\(.)`)

// renamed are words that a variable had once, with the one that it has.
var renamed = map[string]string{"PATCH": "ONLY", "FOCUS": "ONLY"}

// withoutBase are the verbs that make no base tree, and so do not read where it comes from.
var withoutBase = []string{"help", "down", "clean", "export", "rebase"}

// reads reports whether a verb reads a variable.
func reads(verb *cobra.Command, name string) (found bool) {
	check := func(f *pflag.Flag) { found = found || f.Name != "help" && variable(f.Name) == name }
	verb.LocalNonPersistentFlags().VisitAll(check)
	return found || name == variable(checkoutFlag) && !slices.Contains(withoutBase, verb.Name())
}

// readers names the verbs that read a variable: "make up, make demo".
func readers(root *cobra.Command, name string) string {
	var verbs []string
	for _, verb := range root.Commands() {
		if !verb.Hidden && reads(verb, name) {
			verbs = append(verbs, "make "+verb.Name())
		}
	}
	return strings.Join(verbs, ", ")
}

// refuseForeign refuses variables that a verb does not read, and says which verb does.
func refuseForeign(c *cobra.Command, names []string) error {
	foreign := slices.DeleteFunc(names, func(name string) bool { return reads(c, name) })
	if len(foreign) == 0 {
		return nil
	}
	var expected []string
	for _, name := range foreign {
		now := cmp.Or(renamed[name], name)
		switch verbs := readers(c.Root(), now); {
		case verbs == "":
			expected = append(expected, name+": no verb reads it")
		case now != name && reads(c, now):
			expected = append(expected, now+" in place of "+name)
		case now != name:
			expected = append(expected, now+" in place of "+name+", with "+verbs)
		default:
			expected = append(expected, name+" with "+verbs)
		}
	}
	return run.Refuse("make "+c.Name()+" does not read "+strings.Join(foreign, ", "), strings.Join(expected, "; "), "make help")
}

// fromMake gives flags that have no value that of the variable on make's command line. An exported FORCE=1 must not change
// what a verb does. The program runs in scripts/, so paths are those from the folder above.
func fromMake(c *cobra.Command) (err error) {
	values := map[string]string{}
	for _, m := range assignment.FindAllStringSubmatch(os.Getenv("MAKEFLAGS"), -1) {
		values[m[1]] = strings.ReplaceAll(escaped.ReplaceAllString(m[2], "$1"), "$$", "$")
	}
	if err := refuseForeign(c, slices.Sorted(maps.Keys(values))); err != nil {
		return err
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value := values[name]
		if err != nil || f.Changed || value == "" {
			return
		}
		if _, ok := f.Value.(*path); ok && !filepath.IsAbs(value) {
			value = filepath.Join("..", value)
			if value, err = filepath.Abs(value); err != nil {
				return
			}
		}
		if e := c.Flags().Set(f.Name, value); e != nil {
			err = fmt.Errorf("%s=%s: %w", name, value, e)
		}
	})
	return err
}
